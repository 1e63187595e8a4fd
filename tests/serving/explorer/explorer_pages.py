"""Pages of the explorer in a browser."""

import contextlib

HOSTILE = '<img src=x onerror="document.title=1">'


@contextlib.contextmanager
def opened(browser, service, address="/", complaints=()):
    """A page; only `complaints` may appear in the console, and no request may leave the server."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(30_000)
    page = context.new_page()
    words, requests = [], []
    page.on("console", lambda message: words.append(message.text))
    page.on("pageerror", lambda error: words.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.requests = requests
    page.goto(service.address + address)
    yield page
    unexpected = [word for word in words if not any(each in word for each in complaints)]
    assert unexpected == []
    assert [url for url in requests if not url.startswith((service.address, "blob:"))] == []
    context.close()
