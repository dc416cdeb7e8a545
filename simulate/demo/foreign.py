"""German, French and Spanish: nouns in the nominative with their articles, and sentence patterns of both kinds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Language(NamedTuple):
    """What a page in another language is made of."""

    things: tuple[str, ...]
    """Nouns with article."""
    processes: tuple[str, ...]
    explanations: tuple[str, ...]
    plain: tuple[str, ...]
    offers: tuple[str, ...]
    titles: tuple[str, ...]
    sections: tuple[str, ...]
    read_on: str
    home: str
    legal: Mapping[str, tuple[str, tuple[str, ...]]]
    """Pages that every site has: title and sentences by path."""


LANGUAGES: Final = {
    "de": Language(
        things=(
            "der Bienenstock", "das Brot", "der Mast", "die Weiche", "der Garten", "die Linse", "die Brücke",
            "die Kaffeemühle", "das Fernrohr", "die Presse", "die Schleuse", "der Brennofen", "das Barometer",
            "die Kette", "das Pendel", "der Rechner", "das Nest", "der Webstuhl", "die Geige", "der Vulkan",
        ),
        processes=(
            "die Gärung", "die Wartung", "die Strömung", "die Reibung", "die Verdunstung", "die Belichtung",
            "die Schwingung", "die Trocknung", "die Erosion", "die Übertragung",
        ),
        explanations=(
            "{thing} lässt sich nur verstehen, wenn man weiß, wie wichtig {process} dabei ist.",
            "Das liegt daran, dass {process} schon wirkt, bevor {thing} sich sichtbar verändert.",
            "Zum Beispiel bleibt {thing} länger erhalten, weil {process} langsamer verläuft.",
            "Daraus folgt, dass {process} und nicht allein {thing} den Unterschied ausmacht.",
            "Im Jahr {year} zeigte ein Vergleich von {n} Fällen, dass {process} die Ursache war.",
            "Allerdings ist diese Erklärung unvollständig, denn auch {thing} spielt eine Rolle.",
            "Mit anderen Worten: Ohne Sorgfalt ist {process} kaum zu beherrschen.",
        ),
        plain=(
            "Im Sommer {year} stand {thing} noch im Hof.",
            "Gestern war {thing} zum ersten Mal zu sehen.",
            "Neben dem Eingang steht, wie immer, {thing} aus alter Zeit.",
            "Die Gruppe trifft sich jede Woche, und meistens geht es um {n} neue Bilder.",
            "{thing} gehört seit {year} zur Sammlung.",
        ),
        offers=(
            "{thing} jetzt günstig online kaufen, nur {n} Euro!",
            "Versandkostenfrei ab {n} Euro. Hier klicken und sparen.",
            "Neu im Shop: {thing}, {thing}, {thing}.",
            "Kunden kauften auch: {thing}. Lieferung in {n} Tagen.",
            "Jetzt anmelden und {n} % Rabatt sichern.",
        ),
        titles=("Wie wichtig ist {process}?", "{thing} im Überblick", "{thing} günstig kaufen", "Notizen: {thing}"),
        sections=("ratgeber", "aktuelles", "angebote", "archiv"),
        read_on="Mehr dazu unter {link}.",
        home="Startseite",
        legal={
            "impressum": (
                "Impressum",
                (
                    "Verantwortlich für den Inhalt ist {site}.",
                    "Für Inhalte fremder Seiten übernehmen wir keine Haftung.",
                    "Diese Seite verwendet Cookies. Stand: {recent}.",
                ),
            )
        },
    ),
    "fr": Language(
        things=(
            "la ruche", "le pain", "le mât", "la locomotive", "le jardin", "la lentille", "le pont", "le moulin",
            "la lunette", "la presse", "la rivière", "le four", "le baromètre", "la chaîne", "le pendule",
            "le serveur", "le nid", "le métier à tisser", "le violon", "le volcan",
        ),
        processes=(
            "la fermentation", "la ventilation", "la navigation", "la tension", "la germination", "la réfraction",
            "la cuisson", "la condensation", "la mesure du temps", "la migration",
        ),
        explanations=(
            "Pour comprendre ce sujet, il faut savoir comment {process} agit avant que {thing} ne change.",
            "Cela s'explique par le fait que {process} dépend de la température.",
            "Par exemple, {thing} se conserve plus longtemps lorsque {process} reste lente.",
            "Il en résulte que {process} compte davantage que le poids ou la taille.",
            "En {year}, une étude de {n} cas a montré que {process} en était la cause.",
            "Cependant, cette explication est incomplète, car {thing} joue aussi un rôle.",
            "Autrement dit, {process} est un équilibre plutôt qu'un état.",
        ),
        plain=(
            "En {year}, {thing} se trouvait encore dans la cour.",
            "Hier, {thing} était visible pour la première fois.",
            "À côté de l'entrée, on voit {thing} comme toujours.",
            "Le groupe se réunit chaque semaine depuis {n} ans.",
            "{thing} fait partie de la collection depuis {year}.",
        ),
        offers=(
            "{thing} à petit prix, seulement {n} euros, achetez en ligne !",
            "Livraison gratuite dès {n} euros. Cliquez ici.",
            "Nouveautés : {thing}, {thing}, {thing}.",
            "Les clients ont aussi acheté : {thing}. Livraison en {n} jours.",
            "Inscrivez-vous et profitez de {n} % de remise.",
        ),
        titles=("Comprendre : {process}", "Présentation : {thing}", "Promo : {thing}", "Carnet : {thing}"),
        sections=("guide", "actualites", "boutique", "archives"),
        read_on="Voir aussi {link}.",
        home="Accueil",
        legal={
            "mentions-legales": (
                "Mentions légales",
                (
                    "{site} est responsable du contenu de ce site.",
                    "Nous ne répondons pas du contenu des sites externes.",
                    "Ce site utilise des cookies. Mise à jour : {recent}.",
                ),
            )
        },
    ),
    "es": Language(
        things=(
            "la colmena", "el pan", "el mástil", "la locomotora", "el jardín", "la lente", "el puente", "el molino",
            "el telescopio", "la imprenta", "el río", "el horno", "el barómetro", "la cadena", "el péndulo",
            "el servidor", "el nido", "el telar", "el violín", "el volcán",
        ),
        processes=(
            "la fermentación", "la ventilación", "la navegación", "la tensión", "la germinación", "la refracción",
            "la cocción", "la condensación", "la medición del tiempo", "la migración",
        ),
        explanations=(
            "Para entender el tema conviene saber cómo {process} actúa antes de que {thing} cambie.",
            "Esto se debe a que {process} depende de la temperatura.",
            "Por ejemplo, {thing} dura más cuando {process} es lenta.",
            "De ahí se sigue que {process} importa más que el peso o el tamaño.",
            "En {year}, un estudio de {n} casos mostró que {process} era la causa.",
            "Sin embargo, la explicación es incompleta, porque {thing} también influye.",
            "Dicho de otro modo, {process} es un equilibrio y no un estado.",
        ),
        plain=(
            "En {year}, {thing} estaba todavía en el patio.",
            "Ayer se pudo ver {thing} por primera vez.",
            "Junto a la entrada está, como siempre, {thing}.",
            "El grupo se reúne cada semana desde hace {n} años.",
            "{thing} forma parte de la colección desde {year}.",
        ),
        offers=(
            "{thing} al mejor precio, solo {n} euros, ¡compra en línea!",
            "Envío gratis desde {n} euros. Haz clic aquí.",
            "Novedades: {thing}, {thing}, {thing}.",
            "Los clientes también compraron: {thing}. Entrega en {n} días.",
            "Regístrate y consigue un {n} % de descuento.",
        ),
        titles=("Entender: {process}", "Presentación: {thing}", "Oferta: {thing}", "Cuaderno: {thing}"),
        sections=("guia", "noticias", "tienda", "archivo"),
        read_on="Véase también {link}.",
        home="Inicio",
        legal={
            "aviso-legal": (
                "Aviso legal",
                (
                    "{site} es responsable del contenido de este sitio.",
                    "No respondemos del contenido de sitios externos.",
                    "Este sitio utiliza cookies. Actualizado: {recent}.",
                ),
            )
        },
    ),
}  # fmt: skip
