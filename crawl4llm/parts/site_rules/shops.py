"""Rules for shops. Products and categories stay; baskets, accounts, sort orders and filters do not."""

from __future__ import annotations

from typing import Final

from crawl4llm.parts.site_rules.table import Q, Rule, Software

SOFTWARE: Final = (
    Software(
        "woocommerce",
        "WooCommerce",
        "https://woocommerce.com/document/configuring-woocommerce-settings/",
        (
            Rule(
                "basket",
                rf"{Q}(?:add-to-cart|remove_item|undo_item|add_to_wishlist|remove_from_wishlist|added-to-cart|wc-ajax|removed_item|empty-cart)=|/(?:cart|basket|checkout|my-account|wishlist|lost-password|order-received|order-pay)(?:/|\?|$)",
                "baskets, orders and accounts",
                "https://github.com/woocommerce/woocommerce/blob/trunk/plugins/woocommerce/src/Internal/",
            ),
            Rule(
                "filter",
                rf"{Q}(?:orderby|order|min_price|max_price|rating_filter|filter_[\w-]+|query_type_[\w-]+|product_view|per_page|shop_view|on_sale|in_stock|product_count|stock_status)=",
                "sort orders and filters",
                "https://woocommerce.com/document/woocommerce-widgets/",
            ),
        ),
    ),
    Software(
        "magento",
        "Magento",
        "https://experienceleague.adobe.com/en/docs/commerce-admin/marketing/seo/seo-search-engine-robots",
        (
            Rule(
                "form",
                r"/(?:catalogsearch|checkout|customer|wishlist|sendfriend|newsletter|poll|sales|multishipping|paypal|persistent|captcha|contacts?|review|productalert|downloadable|oauth|catalog/product_compare|catalog/seo_sitemap|directory/currency|stores/store|store_switcher|search/term|rss|control|customize)(?:/|\?|$)",
                "forms, baskets, accounts, searches",
            ),
            Rule(
                "system",
                r"/catalog/(?:category|product)/(?:view|gallery)(?:/|\?|$)",
                "the same products and categories, by number",
            ),
            Rule(
                "filter",
                rf"{Q}(?:dir|order|mode|limit|SID|___store|___from_store|price|product_list_\w+|cat|am_landing|options|is_ajax|uenc|form_key)=",
                "sort orders, filters and sessions",
            ),
        ),
    ),
    Software(
        "opencart",
        "OpenCart",
        "https://docs.opencart.com/",
        (
            Rule(
                "form",
                rf"{Q}route=(?:account|affiliate|checkout|api|common/(?:cart|currency|language|cookie)|product/(?:compare|search|review|product[./|]\w+)|information/(?:contact|gdpr|information/agree))\b|/(?:account|checkout|affiliate|cart|compare|login|register|wishlist|contact|search)(?:/|\?|$)|^/admin/|^/index\.php\?.*route=tool/",
                "forms, baskets, accounts, searches",
                "https://github.com/opencart/opencart/tree/master/upload/catalog/controller",
            ),
            Rule(
                "filter",
                rf"{Q}(?:sort|order|limit|filter(?:_\w+)?|tag|search|sub_category|description|tracking|currency|remove|code)=",
                "sort orders, filters and searches",
                "https://github.com/opencart/opencart/blob/master/upload/catalog/controller/product/category.php",
            ),
        ),
    ),
    Software(
        "prestashop",
        "PrestaShop",
        "https://docs.prestashop-project.org/v.8-documentation/user-guide (SEO and URLs: its robots.txt)",
        (
            Rule(
                "form",
                rf"{Q}controller=(?:address(?:es)?|authentication|cart|discount|footer|get-file|header|history|identity|images\.inc|init|my-account|order[\w-]*"
                r"|pagination|password|pdf-[\w-]+|product-sort|search|statistics|attachment|guest-tracking|contact|registration)\b"
                r"|/(?:cart|basket|panier|order|commande|login|connexion|my-account|mon-compte|addresses|address|identity|order-history|order-follow|credit-slip|password-recovery|guest-tracking|discount|search|quick-order|contact-us)(?:/|\?|$)",
                "forms, baskets, accounts, searches",
            ),
            Rule(
                "filter",
                rf"{Q}(?:order|orderby|orderway|tag|id_currency|search_query|s|q|back|n|resultsPerPage|selected_filters|from-xhr|SubmitCurrency|live_edit|content_only|token|isolang|productListView|action|add|delete)=",
                "sort orders, filters and searches",
            ),
        ),
    ),
    Software(
        "shopify",
        "Shopify",
        "https://help.shopify.com/en/manual/promoting-marketing/seo/editing-robots-txt (its default robots.txt)",
        (
            Rule(
                "form",
                r"^/(?:[a-z]{2}(?:-[a-z]{2})?/)?(?:admin|cart|orders|checkouts?|carts|account|search|recommendations|policies|challenge|password|localization)(?:/|\?|$)|^/\d+/(?:checkouts|orders)",
                "baskets, accounts, searches",
            ),
            Rule(
                "filter",
                rf"/collections/.*(?:sort_by|[?&]filter\.|\+)|/blogs/[^?]*\+|{Q}(?:variant|oseid|preview_theme_id|preview_script_id|pr_prod_strat|pr_rec_id|_pos|_sid|_ss|view|q|constraint|grid_list|ls)=|/blogs/[^/]+/tagged/|\.(?:atom|oembed|json|js)(?:\?|$)",
                "sort orders, filters and variants",
            ),
            Rule(
                "collection",
                r"/collections/[^/]+/products/",
                "the same product, in a collection",
                "https://shopify.dev/docs/api/liquid/filters/within",
            ),
        ),
    ),
    Software(
        "oscar",
        "django-oscar",
        "https://github.com/django-oscar/django-oscar/blob/master/src/oscar/apps",
        (
            Rule(
                "form",
                r"/(?:basket|checkout|accounts?|wishlists|alerts|dashboard|vouchers|search|reviews?/(?:add|\d+/vote)|login|logout|i18n)(?:/|\?|$)|/reviews/add/",
                "baskets, accounts, searches",
            ),
            Rule("filter", rf"{Q}(?:sort_by|selected_facets|q|price_range|action)=", "sort orders and facets"),
        ),
    ),
    Software(
        "zencart",
        "Zen Cart",
        "https://github.com/zencart/zencart/blob/master/robots_example.txt",
        (
            Rule(
                "form",
                rf"{Q}main_page=(?:account\w*|address_book\w*|advanced_search\w*|checkout\w*|contact_us|create_account\w*|customers_\w+|download\w*|gv_\w+|login|logoff|password_forgotten|popup_\w+|product_reviews_write|shopping_cart|tell_a_friend|unsubscribe|ask_a_question|discount_coupon|redirect|down_for_maintenance|time_out)\b",
                "forms, baskets, accounts, searches",
            ),
            Rule(
                "filter",
                rf"{Q}sort=(?!20a\b)|{Q}(?:alpha_filter_id|zenid|action|disp_order|currency|language|number_of_uploads|filter_id|typefilter)=",
                "sort orders, filters and sessions",
            ),
        ),
    ),
)
