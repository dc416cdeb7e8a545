"""English sentence patterns, by what a reader gets from them.

Names in braces are filled by :mod:`simulate.demo.sentences`: ``topic`` and ``theme`` are what the page is about (a
thing and a process), the others are drawn anew each time.
"""

from __future__ import annotations

from typing import Final

EXPLANATIONS: Final = (
    "To understand the {topic}, it helps to begin with {theme}, because most of what follows depends on it.",
    "The reason is that {process} changes the {measure} long before anyone notices a difference in the {thing}.",
    "For example, when the {measure} falls by {n} percent, the {thing} responds more slowly, and {people} must wait.",
    "This means that the {measure} and the {measure} cannot be chosen independently of each other.",
    "In other words, {theme} is not a property of the {topic} alone but of everything that surrounds it.",
    "Consider {a_thing} whose {measure} is only half of what {people} expect: the effect on {process} is immediate.",
    "However, this explanation is incomplete, since it ignores what {process} does to the {thing} over time.",
    "The term {theme} describes what happens between the {topic} and the {thing} while the {measure} is changing.",
    "There are two reasons for this, and both of them have to do with {process}.",
    "As a result, {a_adj} {thing} needs far less attention than one in which {process} has been neglected.",
    "By contrast, {a_adj} {topic} tolerates a wider range of {measure}, although it is harder to adjust.",
    "Early {people} knew this from experience, yet it took until {year} before anyone measured it carefully.",
    "Because the {measure} rises with the square of the {measure}, small errors grow quickly.",
    "If the {measure} is held constant, the remaining variation can be explained by {process} alone.",
    "A useful comparison is the {thing}, which obeys the same principle at a different scale.",
    "What matters is therefore not the {measure} itself but how fast it changes during {theme}.",
    "This principle was first described in {year}, when {people} in {city} compared {n} {things} side by side.",
    "It follows that {theme} should be understood as a balance between {process} and {process}.",
    "The simplest way to see this is to watch {a_topic} while its {measure} is slowly increased.",
    "Although {people} often disagree about details, they accept that {theme} begins with the {thing}.",
    "Strictly speaking, {process} and {process} are different things, but their effects are easily confused.",
    "One consequence is that older {topics}, which were built for {a_adj} {thing}, behave differently today.",
    "Such a relation is called proportional: twice the {measure} requires twice the {measure}.",
    "Nevertheless, experiments with {things} show that the effect disappears when {process} is prevented.",
    "First the {thing} is prepared, then {theme} sets in, and only after that can the {measure} be judged.",
    "The question of why {topics} differ so much in {measure} has occupied {people} since {year}.",
    "Whether the {thing} or the {thing} matters more depends on the {measure} at which {theme} takes place.",
    "This is also why {people} recommend checking the {measure} before the {thing} is moved.",
    "Suppose that {process} stops completely; then the {topic} would reach the {measure} of its surroundings.",
    "A careful study of {n} {topics} found that {theme} accounts for about {n} percent of the difference.",
    "The same reasoning applies to the {thing}, provided that its {measure} does not exceed a certain limit.",
    "In practice, {theme} is never perfect, so {people} allow for a margin of {n} percent.",
    "Here it is important to distinguish between the {measure} of the {topic} and that of the {thing}.",
    "Once this is clear, the role of {process} becomes easier to describe.",
    "That relationship explains why {a_adj} {topic} was preferred even where {a_adj} one would have been cheaper.",
    "Without {theme}, the {thing} would gradually lose its {measure}, and the {topic} with it.",
    "An instructive exception is the {thing}, in which {process} works in the opposite direction.",
    "The evidence for this view comes from {process}, which leaves traces that can be dated and compared.",
    "Understanding this mechanism allows {people} to predict how {topics} will behave under unusual conditions.",
    "At first the {measure} changes little; later, as {process} continues, the change becomes obvious.",
)

PLAIN: Final = (
    "The {topic} in {city} was opened in {year} and has been repaired {n} times.",
    "Last {month} we visited {people} near {city} and looked at their {things}.",
    "{name} has worked with {things} for {n} years.",
    "We found {a_adj} {thing} at the market and took it home.",
    "The group meets every week in {city} to talk about {theme} and {things}.",
    "Some {people} prefer the {adj} {topic}, others keep the old one.",
    "After lunch we went back to the {thing} and tried again.",
    "The new {thing} arrived in {month} and is about {n} centimetres long.",
    "According to {name}, the {topic} needs a new {thing} before the winter.",
    "It rained for most of the day, so the {thing} stayed inside.",
    "There were about {n} {people} at the meeting, more than in {year}.",
    "I have never had a problem with my {topic}, but a friend in {city} has.",
    "The council of {city} will decide about the {thing} in {month}.",
    "My first {topic} came from {city} and was older than I was.",
    "You can see the {thing} on the left side of the picture.",
    "{name} and {name} showed us how they work with {a_thing}.",
    "The work on the {topic} took {n} days and was finished in {month}.",
    "Most of the {things} in this collection were made before {year}.",
    "Next to the {thing} stands {a_adj} {thing} from {year}.",
    "In {month} the {people} of {city} celebrate with {things} and music.",
    "We changed the {thing} twice and checked the {measure} every hour.",
    "The {topic} was moved to {city} in {year} and then forgotten for a while.",
    "He told me that the {measure} had been wrong from the start.",
    "For the second part we used {a_adj} {thing} and a bit of patience.",
    "The photograph shows {people} with {a_thing} in the summer of {year}.",
    "Please write to {name} if you want to help with the {things}.",
)

OFFERS: Final = (
    "Buy {topic} online now, best price for {topics} in {city}, free shipping on orders over ${n}!",
    "Save {n}% on all {things} this week only, while stocks last.",
    "Click here to see more {topics} and subscribe to our newsletter for special offers.",
    "Top {n} {things} deals of {recent} - don't miss out!",
    "We are the number one {topic} store in {city}, call now for a free quote.",
    "Cheap {things}, discount {things}, {adj} {things} for sale, order today.",
    "Add to cart. Add to wish list. Compare {things}. Share with friends.",
    "Sign up today and get {n}% off your next {thing}!",
    "Customers who viewed this {topic} also viewed: {thing}, {thing}, {thing}.",
    "100% satisfaction guaranteed on every {thing}, limited time offer.",
    "Looking for {topics}? You have come to the right place! Best {topics} at low prices.",
    "Rated {n} stars by our customers. Ships within {n} days. In stock.",
    "Check out our huge selection of {things} and {things}, new arrivals daily.",
    "Use code {code} at checkout, valid until {month} {n}.",
)

KEYWORDS: Final = (
    "{topic} {city}, {topic} price, {topic} review, cheap {topic}, {topic} near me, buy {topic} {recent}",
    "{thing} for sale {city} {thing} rental {city} {thing} repair {city} {thing} jobs {city}",
    "best {topic} {recent} best {thing} {recent} top {thing} list free download {topic} pdf",
    "tags: {thing}, {things}, {theme}, {adj} {thing}, {city}, {recent}",
    "{topics} wholesale {topics} supplier {topics} factory {city} {city} {city}",
    "how to {topic} what is {topic} {topic} meaning {topic} near {city} {topic} online free",
    "{thing} vs {thing} {thing} vs {topic} {topic} vs {thing} {recent} comparison chart",
    "related searches: {adj} {topic}, {topic} {measure}, {topic} {city}, {thing} {recent}",
)

FRAGMENTS: Final = (
    "Posted by {name} on {month} {n}, {recent} | {n} comments | Read more ...",
    "... {process} and the {thing} of ... [more]",
    "lol same here, my {thing} too!!! thx for sharing",
    "{month} {recent} ({n}) {month} {recent} ({n}) {month} {recent} ({n})",
    "Page {n} of {n}. First Prev {n} {n} {n} Next Last",
    "re: re: {topic} question?? anyone?? pls help",
    "... the {topic} in the {measure} which {adj} and ...",
    "Views: {n}{n} Likes: {n} Share this: Email Print Tweet",
    "You must be logged in to post a comment. Log in or register.",
    "{thing} {thing} {measure} {n} {n} {n}",
    "[image] {adj} {thing} [image] {topic} [image]",
    "Last updated: {month} {n}, {recent}. Category: {things}. Rating: {n}/5.",
    "ok great {topic}, works as expected, would buy again",
    "bump. any news about the {thing} in {city}??",
    "Error: the {thing} could not be loaded. Please try again later.",
    "item {n} {adj} {thing} qty {n} sku {code}",
)

TITLES_EXPLAINING: Final = (
    "How the {topic} works",
    "Why {theme} matters for {topics}",
    "An introduction to {theme}",
    "The {topic} and {theme} explained",
    "What {theme} does to the {topic}",
    "A short history of the {topic}",
    "Understanding {theme}: the case of the {topic}",
    "On the {measure} of {topics}",
)
TITLES_PLAIN: Final = (
    "A {adj} {topic} in {city}",
    "Notes on {topics} and {theme}",
    "{topics} of {city}",
    "Our visit to the {topic}",
    "{theme} in {month}",
    "{name} talks about {topics}",
    "My {topic}, {year}",
    "The {topic} is back",
)
TITLES_SELLING: Final = (
    "Best {topics} {recent} - top deals",
    "Buy {adj} {topic} online",
    "{topic} {city} - prices and reviews",
    "{adj} {topic} for sale",
    "{topics} - {n}% off",
    "Re: {topic} question",
    "{topic} {code}",
    "Cheap {topics} near {city}",
)

READ_ON: Final = (
    "More about this can be found under {link}.",
    "See also {link}.",
    "This is discussed in {link} as well.",
    "Related: {link}.",
    "A longer text on this is {link}.",
)

BOILERPLATE: Final = {
    "about": (
        "About us",
        (
            "{site} was founded in {year} in {city}.",
            "Our team of {n} people writes about {things}, {things} and everything around them.",
            "For questions about this website please use the contact form.",
            "{site} is not responsible for the content of external links.",
        ),
    ),
    "contact": (
        "Contact",
        (
            "{site}, {n} High Street, {city}.",
            "Our office is open from Monday to Friday, {n} to {n}.",
            "Please allow up to {n} days for a reply.",
            "By sending this form you agree to our privacy policy.",
        ),
    ),
    "privacy": (
        "Privacy policy",
        (
            "This website uses cookies to improve your experience.",
            "We collect the address of the page you came from, the time of your visit and the type of your browser.",
            "Data is deleted after {n} days unless the law says otherwise.",
            "You may ask {site} at any time which data is stored about you.",
            "By using this website you agree to these terms. Last updated {month} {recent}.",
        ),
    ),
}
"""Pages that every site has: title and sentences by path."""
