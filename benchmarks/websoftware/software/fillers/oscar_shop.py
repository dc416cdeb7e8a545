"""Fills an Oscar shop with categories, products and reviews."""

import json
from decimal import Decimal
from pathlib import Path

import django

django.setup()

from django.contrib.auth import get_user_model  # noqa: E402 - after setup()
from django.db import transaction  # noqa: E402
from oscar.apps.catalogue.categories import create_from_breadcrumbs  # noqa: E402
from oscar.core.loading import get_model  # noqa: E402

REVIEWS = ["Does what it says.", "Arrived late, but it is good.", "Would buy again."]


def main() -> None:
    content = json.loads(Path("content.json").read_text())
    kinds, product_model = get_model("catalogue", "ProductClass"), get_model("catalogue", "Product")
    partner, stock = get_model("partner", "Partner"), get_model("partner", "StockRecord")
    review = get_model("reviews", "ProductReview")
    with transaction.atomic():
        user = get_user_model().objects.create_user("customer", "customer@example.org", "correct horse 38")
        kind = kinds.objects.create(name="Book", requires_shipping=True, track_stock=True)
        seller = partner.objects.create(name="Own stock")
        categories: dict[str, object] = {}
        for number, told in enumerate(content["products"]):
            shelf, name = told["category"][:1].upper(), told["category"].capitalize()
            if name not in categories:
                categories[name] = create_from_breadcrumbs(f"Shelf {shelf} > {name}")
            product = product_model(
                pk=number + 1,
                title=told["title"],
                slug=told["slug"],
                description=told["text"],
                product_class=kind,
                upc=str(9000000 + number),
                is_public=True,
            )
            product.save(force_insert=True)
            product.categories.add(categories[name])
            stock.objects.create(
                product=product,
                partner=seller,
                partner_sku=str(number),
                price_currency="EUR",
                num_in_stock=9,
                price=Decimal(5 + number % 40),
            )
            for place in range(told["reviews"]):
                text = REVIEWS[place % 3]
                review.objects.create(
                    product=product,
                    score=3 + place % 3,
                    title=text,
                    body=text,
                    user=None,
                    name=f"Reader {place}",
                    email="reader@example.org",
                    status=1,
                )
        assert user.pk


main()
