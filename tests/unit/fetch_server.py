"""A server of files that misbehaves on request, on the loopback only. It prints its port, and ends when its standard input
does or after two minutes. Paths are /FAULT/BYTES/NAME; the content of a name is the same every time, begins and ends with
PAR1, and has that many bytes. /log/ANYTHING answers what was asked so far, one request a line. FILE: serves one file.

usage: fetch_server.py [FILE]
"""
import collections
import hashlib
import http.server
import os
import socket
import struct
import sys
import threading
import time

requests = collections.Counter()
log = []
lock = threading.Lock()
served = open(sys.argv[1], "rb").read() if len(sys.argv) > 1 else None


def content(name, size):
    if served is not None:
        return served
    block = hashlib.sha256(name.removeprefix("hub-").encode()).digest() * 1024
    body = (block * (size // len(block) + 1))[: max(size - 8, 0)]
    return b"PAR1" + body + b"PAR1"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def reset(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True

    def plain(self, code, headers, body=b""):
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        if "Content-Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = lambda self: self.do_GET()

    def do_GET(self):
        if self.path.startswith("/log"):
            return self.plain(200, {}, "\n".join(log).encode())
        _, fault, size, name = self.path.split("/", 3)
        with lock:
            requests[self.path] += 1
            turn = requests[self.path]
            log.append(f"{self.command} {fault} {self.headers.get('Range', '-')} {self.headers.get('If-Range', '-')}")
        body = content(name, int(size))
        getattr(self, "fault_" + fault.replace("-", "_"))(turn, body, name)

    def whole(self, body, headers=None, ranges=True, etag='"one"', stop=None):
        """The file or the part asked for; `stop` bytes of it, then the connection is closed."""
        headers = dict(headers or {})
        if etag:
            headers["ETag"] = etag
        start, code = 0, 200
        asked = self.headers.get("Range", "")
        if ranges and asked.startswith("bytes=") and self.headers.get("If-Range", etag) == etag:
            start = int(asked[6:].split("-")[0])
            if start >= len(body):
                return self.plain(416, {"Content-Range": f"bytes */{len(body)}"})
            code = 206
            headers["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
        part = body[start:]
        headers["Content-Length"] = str(len(part))
        self.plain(code, headers, part if stop is None else part[:stop])
        if stop is not None and stop < len(part):
            self.wfile.flush()
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

    def fault_none(self, turn, body, name):
        self.whole(body)

    def fault_short(self, turn, body, name):
        self.whole(body, stop=len(body) // 3 if turn < 3 else None)

    def fault_always_short(self, turn, body, name):
        self.whole(body, stop=len(body) // 3 if turn == 1 else 0)

    def fault_busy(self, turn, body, name):
        self.plain(500 if turn == 1 else 503, {"Retry-After": "0"}, b"<html>busy</html>") if turn < 3 else self.whole(body)

    def fault_always_busy(self, turn, body, name):
        self.plain(503, {}, b"<html>busy</html>")

    def fault_wrong_size(self, turn, body, name):
        self.whole(body, {"X-Linked-Size": str(len(body) + 5)})

    def fault_hash(self, turn, body, name):
        self.whole(body, {"X-Linked-Etag": '"' + "0" * 64 + '"'})

    def fault_hub(self, turn, body, name):
        """A hub's first hop: names size and hash of what the second one serves."""
        hop = f"http://{self.headers['Host']}/short/{len(body)}/hub-{name}"
        self.plain(302, {"Location": hop, "X-Linked-Size": str(len(body)),
                         "X-Linked-Etag": '"' + hashlib.sha256(body).hexdigest() + '"'})

    def fault_damaged_once(self, turn, body, name):
        self.whole(body if turn > 1 else body[:100] + b"!" + body[101:], {"X-Linked-Etag": '"' + hashlib.sha256(body).hexdigest() + '"'})

    def fault_no_range(self, turn, body, name):
        self.whole(body, ranges=False, stop=len(body) // 2 if turn == 1 else None)

    def fault_no_etag(self, turn, body, name):
        self.whole(body, etag=None, stop=len(body) // 2 if turn == 1 else None)

    def fault_changed(self, turn, body, name):
        other = b"PAR1" + bytes(len(body) - 8) + b"PAR1"
        self.whole(other, etag='"old"', stop=len(body) // 2) if turn == 1 else self.whole(body, etag='"new"')

    def fault_wrong_range(self, turn, body, name):
        if turn == 1:
            return self.whole(body, stop=len(body) // 2)
        if turn == 2:
            return self.plain(206, {"ETag": '"one"', "Content-Range": f"bytes 7-{len(body) - 1}/{len(body)}"}, body[7:])
        self.whole(body)

    def fault_reset(self, turn, body, name):
        if turn < 3:
            self.send_response(200)
            self.send_header("ETag", '"one"')
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 4])
            self.wfile.flush()
            return self.reset()
        self.whole(body)

    def fault_slow(self, turn, body, name):
        if turn > 1:
            return self.whole(body)
        self.send_response(200)
        self.send_header("ETag", '"one"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:1000])
        self.wfile.flush()
        time.sleep(6)
        self.reset()

    def fault_drip(self, turn, body, name):
        """Slow but alive: for interruptions."""
        self.send_response(200)
        self.send_header("ETag", '"one"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            for at in range(0, len(body), 2000):
                self.wfile.write(body[at:at + 2000])
                self.wfile.flush()
                time.sleep(0.05)
        except OSError:
            self.close_connection = True

    def fault_missing(self, turn, body, name):
        self.plain(404, {}, b"no such file")

    def fault_page(self, turn, body, name):
        self.plain(200, {"Content-Type": "text/html"}, b"<html>log in to the network first</html>")

    def fault_to_file(self, turn, body, name):
        self.plain(302, {"Location": "file:///etc/passwd"})

    def fault_to_ftp(self, turn, body, name):
        self.plain(302, {"Location": "ftp://127.0.0.1/x"})

    def fault_loop(self, turn, body, name):
        self.plain(302, {"Location": self.path})

    def fault_empty(self, turn, body, name):
        self.plain(200, {})

    def fault_endless(self, turn, body, name):
        """No length, and more than anybody wants."""
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        try:
            for _ in range(64):
                self.wfile.write(body)
        except OSError:
            pass
        self.close_connection = True


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client):
        pass


server = Server(("127.0.0.1", 0), Handler)
os.write(1, f"{server.server_address[1]}\n".encode())
threading.Timer(120, lambda: os._exit(1)).start()
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
os._exit(0)
