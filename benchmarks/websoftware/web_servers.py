"""Configurations of nginx, Apache, lighttpd and Caddy that serve sites, each name at an address of its own.

The servers log in one format, tab-separated: time, port, host, request line, status, bytes, content type, user agent;
Caddy alone in JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.websoftware.site import Backend, Site

_APACHE_MODULES = (
    *("mpm_event", "authz_core", "dir", "mime", "rewrite", "alias", "proxy", "proxy_fcgi", "proxy_http", "ssl"),
    *("headers", "auth_basic", "authn_core", "authn_file", "authz_user", "cgid", "autoindex"),
)

_LIGHTTPD_MODULES = (
    *("access", "accesslog", "alias", "redirect", "rewrite", "fastcgi", "cgi", "setenv", "proxy", "openssl"),
    "dirlisting",
)


class Served(NamedTuple):
    """A site with the addresses of its names and how it is reached."""

    site: Site
    addresses: Mapping[str, str]
    backend: Backend


class Places(NamedTuple):
    """Files that all servers use."""

    folder: Path
    certificate: Path
    key: Path
    php: Path
    """Socket of php-fpm that sites share."""
    cgi: Path
    """Socket of fcgiwrap."""
    logs: Path

    def php_of(self, backend: Backend) -> Path:
        """Return the socket of php-fpm that serves a site."""
        return self.php.with_name(f"php-{backend.pool}.sock") if backend.pool else self.php


def commands(places: Places, sites: Sequence[Served]) -> list[list[str]]:
    """Write the configurations; returns the command of each server that has sites."""
    started = []
    for name, (write, command) in _SERVERS.items():
        if of_server := [one for one in sites if one.site.server == name]:
            file = places.folder / f"{name}.conf"
            file.write_text(write(places, of_server), encoding="utf-8")
            started.append([part.format(file=file, folder=places.folder) for part in command])
    return started


def _nginx(places: Places, sites: Sequence[Served]) -> str:
    servers = []
    for one in sites:
        for name, address in one.addresses.items():
            if name != one.site.host or one.site.scheme == "https":
                servers.append(
                    f"server {{ listen {address}:80; server_name {name}; return 301 {one.site.url}$request_uri; }}"
                )
            if name != one.site.host and one.site.scheme == "https":
                servers.append(
                    f"server {{ listen {address}:443 ssl; server_name {name}; return 301 {one.site.url}$request_uri; }}"
                )
        port = "443 ssl" if one.site.scheme == "https" else "80"
        servers.append(
            f"server {{ listen {one.addresses[one.site.host]}:{port}; server_name {one.site.host}; "
            f"root {one.backend.root}; index index.php index.html;\n{_nginx_body(places, one.backend)}\n}}"
        )
    joined = "\n".join(servers)
    return f"""
user root; worker_processes 1; daemon off; pid {places.folder}/nginx.pid; error_log {places.logs}/nginx-error.log;
events {{ worker_connections 1024; }}
http {{
include /etc/nginx/mime.types; default_type application/octet-stream; server_names_hash_bucket_size 128;
client_body_temp_path {places.folder}/nginx-body; fastcgi_temp_path {places.folder}/nginx-fastcgi;
proxy_temp_path {places.folder}/nginx-proxy; uwsgi_temp_path {places.folder}/nginx-uwsgi;
scgi_temp_path {places.folder}/nginx-scgi; fastcgi_buffers 32 32k; fastcgi_buffer_size 64k; proxy_buffers 16 64k;
proxy_buffer_size 64k; proxy_busy_buffers_size 128k; fastcgi_read_timeout 120; proxy_read_timeout 120;
log_format told
  "$msec\t$server_port\t$host\t$request\t$status\t$body_bytes_sent\t$sent_http_content_type\t$http_user_agent";
access_log {places.logs}/nginx.log told;
ssl_certificate {places.certificate}; ssl_certificate_key {places.key};
{joined}
}}
"""


def _nginx_body(places: Places, backend: Backend) -> str:
    lines = [f'rewrite "{pattern}" {target} last;' for pattern, target in backend.rewrites]
    lines += [f"location {path} {{ alias {folder}/; }}" for path, folder in backend.aliases.items()]
    lines += [f"location = {path} {{ alias {file}; }}" for path, file in backend.files.items()]
    variables = " ".join(f'fastcgi_param {name} "{value}";' for name, value in backend.variables.items())
    if backend.kind == "proxy":
        headers = "proxy_set_header Host $host; proxy_set_header X-Forwarded-Proto $scheme;"
        lines.append(f"location / {{ proxy_pass http://{backend.socket}; {headers} }}")
    elif backend.kind == "cgi":
        lines.append(
            "location / { include /etc/nginx/fastcgi_params; "
            f"fastcgi_param SCRIPT_FILENAME {backend.root / backend.front}; fastcgi_param PATH_INFO $uri; "
            f"fastcgi_param SCRIPT_NAME ''; {variables} fastcgi_pass unix:{places.cgi}; }}"
        )
    elif backend.kind == "php":
        front = f"{backend.front}$is_args$args" if backend.front else "=404"
        lines.append(f"location / {{ try_files $uri $uri/ {front}; }}")
        lines.append(
            "location ~ \\.php(/|$) { fastcgi_split_path_info ^(.+?\\.php)(/.*)?$; include /etc/nginx/fastcgi_params; "
            "fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name; "
            f"fastcgi_param PATH_INFO $fastcgi_path_info; {variables} fastcgi_pass unix:{places.php_of(backend)}; }}"
        )
    else:
        missing = backend.missing.removeprefix("200 ")
        if backend.missing.startswith("200 "):
            lines.append(f"location / {{ try_files $uri $uri/ {missing}; }}")
        elif missing:
            lines.append(f"error_page 404 {missing};")
    return "\n".join(lines)


def _apache(places: Places, sites: Sequence[Served]) -> str:
    lines = [f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so" for name in _APACHE_MODULES]
    lines += [
        f"ServerRoot {places.folder}",
        f"PidFile {places.folder}/apache.pid",
        "ServerName localhost",
        "User www-data",
        "Group www-data",
        f"ErrorLog {places.logs}/apache-error.log",
        "TypesConfig /etc/mime.types",
        "AddDefaultCharset utf-8",
        f"ScriptSock {places.folder}/apache-cgi.sock",
        'LogFormat "%{sec}t.%{msec_frac}t\\t%{local}p\\t%V\\t%r\\t%>s\\t%B\\t%{Content-Type}o\\t%{User-Agent}i" told',
        f"CustomLog {places.logs}/apache.log told",
        "DirectoryIndex index.php index.html",
        "<Directory />\nRequire all granted\nAllowOverride None\nOptions FollowSymLinks\n</Directory>",
        "AllowEncodedSlashes NoDecode",
    ]
    secure = f"SSLEngine on\nSSLCertificateFile {places.certificate}\nSSLCertificateKeyFile {places.key}"
    for one in sites:
        for name, address in one.addresses.items():
            ports = ["80", "443"] if one.site.scheme == "https" else ["80"]
            lines += [f"Listen {address}:{port}" for port in ports]
            for port in ports:
                canonical = name == one.site.host and port == ports[-1]
                body = _apache_body(places, one.backend) if canonical else f"Redirect 301 / {one.site.url}/"
                lines.append(
                    f"<VirtualHost {address}:{port}>\nServerName {name}\n{secure if port == '443' else ''}\n"
                    f"{body}\n</VirtualHost>"
                )
    return "\n".join(lines) + "\n"


def _apache_body(places: Places, backend: Backend) -> str:
    lines = [f"DocumentRoot {backend.root}"]
    lines += [
        f"<Location {path}>\nAuthType Basic\nAuthName members\nAuthUserFile /dev/null\nRequire valid-user\n</Location>"
        for path in backend.secured
    ]
    lines += [f"Alias {path} {folder}/" for path, folder in backend.aliases.items()]
    lines += [f"Alias {path} {file}" for path, file in backend.files.items()]
    if backend.rewrites:
        lines.append("RewriteEngine on")
        lines += [f'RewriteRule "{pattern}" {target} [PT,QSA,B]' for pattern, target in backend.rewrites]
    if backend.kind == "proxy":
        lines += ["ProxyPreserveHost on", 'RequestHeader set X-Forwarded-Proto "https"']
        lines.append(f"ProxyPass / http://{backend.socket}/ nocanon")
    elif backend.kind == "php":
        variables = " ".join(f"ProxyFCGISetEnvIf true {name} {value}\n" for name, value in backend.variables.items())
        lines.append(
            f'<FilesMatch "\\.php$">\nSetHandler "proxy:unix:{places.php_of(backend)}|fcgi://localhost"\n</FilesMatch>\n{variables}'
        )
        if backend.front:
            lines.append(f"FallbackResource {backend.front}")
    elif backend.missing:
        lines.append(f"ErrorDocument 404 {backend.missing}")
    return "\n".join(lines)


def _lighttpd(places: Places, sites: Sequence[Served]) -> str:
    modules = ", ".join(f'"mod_{name}"' for name in _LIGHTTPD_MODULES)
    lines = [
        f"server.modules = ({modules})",
        f'server.document-root = "{places.folder}"',
        "server.port = 80",
        f'server.bind = "{next(iter(sites[0].addresses.values()))}"',
        f'server.errorlog = "{places.logs}/lighttpd-error.log"',
        f'accesslog.filename = "{places.logs}/lighttpd.log"',
        'accesslog.format = "%{sec}t.%{msec_frac}t\t%p\t%V\t%r\t%s\t%b\t%{Content-Type}o\t%{User-Agent}i"',
        'index-file.names = ("index.php", "index.html")',
        f'ssl.pemfile = "{places.certificate}"',
        f'ssl.privkey = "{places.key}"',
        'include_shell "/usr/share/lighttpd/create-mime.conf.pl"',
    ]
    first = True
    for one in sites:
        for name, address in one.addresses.items():
            for port in ["80", "443"]:
                secure = 'ssl.engine = "enable"' if port == "443" else ""
                canonical = name == one.site.host and (port == "443") == (one.site.scheme == "https")
                redirect = f'url.redirect = ("" => "{one.site.url}${{url.path}}${{qsa}}")'
                body = _lighttpd_body(places, one.backend) if canonical else redirect
                at = f'$SERVER["socket"] == "{address}:{port}"'
                lines.append(f"{at} {{\n{secure}\n{body}\n}}")
                first = False
    assert not first
    return "\n".join(lines) + "\n"


def _lighttpd_body(places: Places, backend: Backend) -> str:
    lines = [f'server.document-root = "{backend.root}"']
    if backend.aliases or backend.files:
        pairs = [(path, f"{folder}/") for path, folder in backend.aliases.items()]
        pairs += [(path, str(file)) for path, file in backend.files.items()]
        aliases = ", ".join(f'"{path}" => "{target}"' for path, target in pairs)
        lines.append(f"alias.url = ({aliases})")
    if backend.rewrites:
        rules = ", ".join(f'"{pattern}" => "{target}${{qsa}}"' for pattern, target in backend.rewrites)
        lines.append(f"url.rewrite-if-not-file = ({rules})")
    if backend.kind == "php":
        lines.append(
            f'fastcgi.server = (".php" => (("socket" => "{places.php_of(backend)}", '
            '"broken-scriptfilename" => "enable", "check-local" => "enable")))'
        )
    elif backend.kind == "cgi":
        variables = ", ".join(f'"{name}" => "{value}"' for name, value in backend.variables.items())
        lines.append(f"setenv.set-environment = ({variables})")
        lines.append(f'url.rewrite-if-not-file = ("^/(.*)$" => "/{backend.front}/$1")')
        lines.append(f'cgi.assign = ("{backend.front}" => "")')
    elif backend.kind == "proxy":
        host, _, port = backend.socket.partition(":")
        lines.append(f'proxy.server = ("" => (("host" => "{host}", "port" => {port})))')
    elif backend.missing:
        lines.append(f'server.errorfile-prefix = "{backend.root}/errors-"')
    return "\n".join(lines)


def _caddy(places: Places, sites: Sequence[Served]) -> str:
    log = f"log {{\noutput file {places.logs}/caddy.json {{\nroll_disabled\n}}\nformat json\n}}"
    parts = [f"{{\nadmin off\nauto_https off\nstorage file_system {places.folder}/caddy-files\n}}"]
    tls = f"tls {places.certificate} {places.key}"
    for one in sites:
        for name, address in one.addresses.items():
            for scheme in ["http", "https"]:
                canonical = name == one.site.host and scheme == one.site.scheme
                body = _caddy_body(places, one.backend) if canonical else f"redir {one.site.url}{{uri}} permanent"
                secure = tls if scheme == "https" else ""
                parts.append(f"{scheme}://{name} {{\nbind {address}\n{secure}\n{log}\n{body}\n}}")
    return "\n".join(parts) + "\n"


def _caddy_body(places: Places, backend: Backend) -> str:
    lines = [f"root * {backend.root}"]
    lines += [f"handle_path {path}* {{\nroot * {folder}\nfile_server\n}}" for path, folder in backend.aliases.items()]
    lines += [
        f"handle {path} {{\nroot * {file.parent}\nrewrite * /{file.name}\nfile_server\n}}"
        for path, file in backend.files.items()
    ]
    if backend.kind == "proxy":
        lines.append(f"handle {{\nreverse_proxy {backend.socket}\n}}")
    elif backend.kind == "php":
        lines.append(f"php_fastcgi unix/{places.php_of(backend)}\nfile_server")
    else:
        lines.append("handle {\nfile_server\n}")
        if backend.missing.startswith("200 "):
            lines.insert(1, f"try_files {{path}} {{path}}/ {backend.missing.removeprefix('200 ')}")
        elif backend.missing:
            lines.append(f"handle_errors {{\nrewrite * {backend.missing}\nfile_server\n}}")
    return "\n".join(lines)


def _front(places: Places, sites: Sequence[Served]) -> str:
    """Return the configuration of the server of the small web."""
    told = []
    for one in sites:
        backend = one.backend
        for name, address in one.addresses.items():
            for port in (80, 443):
                canonical = name == one.site.host and (port == 443) == (one.site.scheme == "https")
                entry = {"address": address, "port": port, "name": name, "root": str(backend.root)}
                entry |= {"redirect": "" if canonical else one.site.url, "socket": backend.socket}
                told.append(entry)
    return json.dumps({"certificate": str(places.certificate), "log": str(places.logs / "front.log"), "servers": told})


_SERVERS = {
    "nginx": (_nginx, ["nginx", "-c", "{file}", "-p", "{folder}"]),
    "apache": (_apache, ["apache2", "-DFOREGROUND", "-f", "{file}"]),
    "lighttpd": (_lighttpd, ["lighttpd", "-D", "-f", "{file}"]),
    "caddy": (_caddy, ["caddy", "run", "--config", "{file}", "--adapter", "caddyfile"]),
    "front": (_front, [sys.executable, "-m", "benchmarks.websoftware.front", "{file}"]),
}
PROGRAMS = {"nginx": "nginx", "apache": "apache2", "lighttpd": "lighttpd", "caddy": "caddy", "front": sys.executable}
