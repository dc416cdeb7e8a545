<?php
/* Installs WordPress in a folder and fills it: wordpress.php FOLDER POSTS.json */
define('WP_INSTALLING', true);
[, $www, $file] = $argv;
$told = json_decode(file_get_contents($file), true);
require "$www/wp-config.php";
$_SERVER['HTTP_HOST'] = parse_url(WP_HOME, PHP_URL_HOST);
$_SERVER['REQUEST_URI'] = '/';
require ABSPATH . 'wp-admin/includes/upgrade.php';
function wp_new_blog_notification($title, $url, $user, $password) {}
wp_install($told['title'], 'editor', 'editor@example.org', true, '', 'correct horse 38');
wp_delete_post(1, true);
update_option('permalink_structure', $told['permalinks']);
update_option('template', $told['theme']);
update_option('stylesheet', $told['theme']);
update_option('thread_comments', 1);
update_option('require_name_email', 0);
$authors = [1];
foreach (['anna', 'bertil', 'carmen'] as $name) {
    $authors[] = wp_insert_user(['user_login' => $name, 'user_pass' => wp_generate_password(), 'user_email' => "$name@example.org"]);
}
$blocks = get_option('widget_block', []);
unset($blocks['_multiwidget']);
$number = max(array_keys($blocks ?: [0 => 0])) + 1;
$blocks[$number] = ['content' => '<!-- wp:calendar /-->'];
$items = '';
foreach ($told['links'] as [$title, $url]) {
    $items .= '<li><a href="' . esc_url($url) . '">' . esc_html($title) . '</a></li>';
}
$blocks[$number + 1] = ['content' => "<h2>Blogroll</h2><ul>$items</ul>"];
$blocks['_multiwidget'] = 1;
update_option('widget_block', $blocks);
$sidebars = get_option('sidebars_widgets', []);
$sidebars['sidebar-1'] = array_merge($sidebars['sidebar-1'] ?? [], ["block-$number", 'block-' . ($number + 1)]);
update_option('sidebars_widgets', $sidebars);
wp_defer_term_counting(true);
wp_defer_comment_counting(true);
foreach ($told['posts'] as $post) {
    $category = wp_create_category($post['category']);
    $id = wp_insert_post([
        'import_id' => $post['id'], 'post_title' => $post['title'], 'post_name' => $post['slug'],
        'post_content' => $post['content'], 'post_status' => 'publish', 'post_date' => $post['date'],
        'post_author' => $authors[$post['author']], 'post_category' => [$category], 'tags_input' => $post['tags'],
    ], true);
    if (is_wp_error($id) || $id != $post['id'] || get_post($id)->post_name != $post['slug']) {
        fwrite(STDERR, "post {$post['id']} was not inserted as {$post['slug']}\n");
        exit(1);
    }
    $parent = 0;
    foreach ($post['replies'] as $place => $reply) {
        $parent = wp_insert_comment([
            'comment_post_ID' => $id, 'comment_author' => ['Dan', 'Eve', 'Finn', 'Gil'][$place % 4],
            'comment_author_email' => 'reader@example.org', 'comment_content' => $reply, 'comment_approved' => 1,
            'comment_parent' => $place % 3 ? $parent : 0, 'comment_date' => $post['date'],
        ]);
    }
}
wp_defer_term_counting(false);
wp_defer_comment_counting(false);
