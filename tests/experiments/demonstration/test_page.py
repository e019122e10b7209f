"""The page in a real browser: headless Chromium, driven by playwright."""

import re
import socket
import threading
from contextlib import contextmanager
from io import BytesIO

import pytest

pytest.importorskip("fastapi", reason="the page needs auxhash[serve]")
pytest.importorskip("uvicorn", reason="the page needs auxhash[serve]")
pytest.importorskip("httpx", reason="the tests of the page need httpx")
import uvicorn
from fastapi import HTTPException, Request
from fastapi.responses import JSONResponse

from auxhash import stores
from auxhash.serve import app
from auxhash.serve.service import Service
from tests.browser import browser as browser
from tests.experiments.demonstration.shown import application, small
from tests.serve.conftest import BITS
from tests.serve.conftest import hasher as hasher
from tests.serve.conftest import model as model
from tests.serve.conftest import url as url

WIDE, NARROW = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
SEVEN = [[(70, 45), (170, 45), (110, 205)], [(95, 125), (165, 125)]]


@contextmanager
def served(application, lifespan="off"):
    """The address of an application on a free port of this machine."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        config = uvicorn.Config(application, log_level="error", lifespan=lifespan, ws="none")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="module")
def show():
    return small()


@pytest.fixture(scope="module")
def address(show):
    with served(application(show)) as url:
        yield url


@pytest.fixture
def opened(browser):
    """Opens pages; in the end none may have complained, or asked for anything elsewhere."""
    contexts, faults = [], []

    def open_page(address, viewport=WIDE, scheme="light", expected=(), touch=False, path="/"):
        context = browser.new_context(viewport=viewport, color_scheme=scheme, has_touch=touch)
        context.set_default_timeout(20_000)
        contexts.append(context)
        page = context.new_page()

        def heard(message):
            fine = any(text in message.text for text in expected)
            if message.type in ("error", "warning") and not fine:
                faults.append(message.text)

        def asked(request):
            if not request.url.startswith((address, "data:", "blob:")):
                faults.append(request.url)

        page.on("console", heard)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", asked)
        page.goto(address + path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert faults == []


@pytest.fixture
def page(opened, address):
    page = opened(address)
    page.wait_for_selector(".tile")
    return page


def searched(page, act):
    """Do something that makes the page search; its request and the answer."""
    with page.expect_response("**/show/search") as response:
        act()
    answer = response.value.json()
    page.wait_for_function(
        "rows => JSON.stringify([...document.querySelectorAll('.model.left .tile')]"
        ".map(tile => Number(tile.dataset.row))) === JSON.stringify(rows)",
        arg=answer["found"][0]["rows"][:20],
    )
    return response.value.request.post_data_json, answer


def scores(page, side, which="this"):
    """Precision and recall as the page tells them; nothing where they are not known."""
    texts = page.locator(f".model.{side} .{which} td").all_inner_texts()
    return [float(text.removesuffix("%")) for text in texts if text.endswith("%")]


def percents(*values):
    """Write shares as the page does, with one digit."""
    return pytest.approx([100 * value for value in values], abs=0.0501)


def test_the_first_screen_says_what_it_is_about(page, show):
    sentences = page.locator(".lead li").all_inner_texts()
    assert len(sentences) == 3
    assert all(len(text.split()) < 40 for text in sentences)
    for part in ("h1", ".lead", "#query-title", "#gallery", ".tile >> nth=0"):
        box = page.locator(part).first.bounding_box()
        assert box["y"] + box["height"] <= WIDE["height"]
    assert page.locator("#left-model").input_value() == "two-step"
    assert page.locator("#right-model").input_value() == "refined"


def test_a_picture_is_picked(page, show):
    row = next(row for row in show.gallery if row != show.about["first"])
    picture = page.locator(f'input[name="picked"][value="{row}"]')
    asked, answer = searched(page, lambda: picture.check(force=True))
    assert asked == {"query": row, "models": ["two-step", "refined"]}
    assert answer == show.search(asked)
    label = show.data.query.y[row]
    tiles = page.locator(".model.right .tile")
    assert tiles.count() == 20
    for at in (0, 19):
        near = answer["found"][1]["rows"][at]
        right = show.data.base.y[near] == label
        tile = tiles.nth(at)
        message = f"a {show.data.base.y[near]}, distance {answer['found'][1]['distances'][at]}"
        word, mark = ("right", "✓") if right else ("wrong", "✗")
        assert tile.locator("img").get_attribute("alt") == f"{message}, {word}"
        assert tile.locator(".mark").inner_text() == mark
        differ = answer["found"][1]["codes"][at] ^ answer["found"][1]["code"]
        assert tile.locator(".lit").count() == differ.bit_count()
    ink = page.locator("#pixels [role=gridcell]").nth(11).get_attribute("aria-label")
    assert ink == f"row 2, column 4: ink {show.data.query.X[row][11]} of 16"


def test_sliders_move_precision_and_recall_to_the_servers_numbers(page, show):
    asked = {"query": show.about["first"], "models": ["two-step", "refined"]}
    sides = show.search(asked)["found"]
    curves = {model["name"]: model for model in show.about["models"]}
    for slider, value in (("k", 1), ("k", 57), ("radius", 0), ("radius", 5)):
        page.locator(f"#{slider}").fill(str(value))
        assert page.locator(f"#{slider}-told").inner_text() == str(value)
        kind, at = ("", value - 1) if slider == "k" else ("radius_", value)
        for side, one in zip(("left", "right"), sides, strict=True):
            every = curves[one["model"]]
            names = f"{kind}precision", f"{kind}recall"
            assert scores(page, side) == percents(*(one[name][at] for name in names))
            assert scores(page, side, "all") == percents(*(every[name][at] for name in names))
            n = value if slider == "k" else one["within"][value]
            assert page.locator(f".model.{side} .tile").count() == min(n, 24)
        assert page.locator(f'input[name="by"][value="{slider}"]').is_checked()
    marks = page.locator("#curves .marker circle.right")
    assert marks.count() == 3  # precision over k; precision and recall within the radius


def test_other_models_can_be_compared(page, show):
    searched(page, lambda: page.locator("#left-model").select_option("kernels"))
    page.wait_for_function("document.querySelector('#colour').options[1].text.includes('kernels')")
    with page.expect_response("**/show/search") as response:
        page.locator("#right-model").select_option("network")
    assert response.value.request.post_data_json["models"] == ["kernels", "network"]
    side = response.value.json()["found"][1]
    page.wait_for_function(
        "rows => [...document.querySelectorAll('.model.right .tile')]"
        ".every((tile, at) => Number(tile.dataset.row) === rows[at])",
        arg=side["rows"],
    )
    wanted = side["precision"][19], side["recall"][19]
    assert scores(page, "right") == percents(*wanted)


def drawn(page, strokes):
    box = page.locator("#pad").bounding_box()
    for first, *others in strokes:
        page.mouse.move(box["x"] + first[0], box["y"] + first[1])
        page.mouse.down()
        for x, y in others:
            page.mouse.move(box["x"] + x, box["y"] + y, steps=4)
        page.mouse.up()


def test_a_digit_is_drawn(page):
    page.locator('input[value="draw"]').check(force=True)
    searched(page, lambda: drawn(page, SEVEN[:1]))
    asked, answer = searched(page, lambda: drawn(page, SEVEN[1:]))
    pixels = asked["pixels"]
    assert 17 < sum(pixels) / 16 < 22  # as much ink as others have
    assert max(pixels[:8]) > 8 < max(pixels[56:])  # from top to bottom
    assert max(pixels[0::8]) == 0  # and not at the left edge
    assert scores(page, "left") == []
    assert page.locator(".model.left .tile.wrong").count() == 0
    _, answer = searched(page, lambda: page.locator("#label").select_option("7"))
    assert answer["found"][1]["precision"][9] >= 0.8
    assert scores(page, "right") == percents(
        answer["found"][1]["precision"][19], answer["found"][1]["recall"][19]
    )
    page.locator("#clear").click()
    assert page.locator("#label").input_value() == ""


STROKES = {
    0: [[(120, 40), (90, 60), (75, 120), (90, 180), (120, 200), (150, 180), (165, 120), (150, 60),
         (120, 40)]],
    1: [[(120, 40), (118, 200)]],
    2: [[(75, 85), (90, 50), (120, 40), (150, 50), (160, 80), (140, 120), (75, 200), (170, 200)]],
    4: [[(130, 40), (70, 140), (180, 140)], [(140, 90), (140, 205)]],
    5: [[(165, 40), (90, 40), (85, 110), (120, 100), (160, 130), (160, 170), (120, 198),
         (80, 185)]],
    7: SEVEN,
}  # fmt: skip


def test_drawn_and_uploaded_digits_are_found_among_their_own(page, show):
    """Of six simple digits, whatever their place and size, most neighbours are right."""
    code = """async ([strokes, size]) => {
        const {ofStrokes, ofFile} = await import("/static/pictures.js");
        const placed = strokes.map((stroke) => stroke.map(([x, y]) => [9 + size * x, size * y]));
        const canvas = document.createElement("canvas");
        canvas.width = canvas.height = 300;
        const pen = canvas.getContext("2d");
        pen.fillStyle = "#eee";
        pen.fillRect(0, 0, 300, 300);
        pen.lineWidth = 12;
        for (const stroke of placed) {
            pen.beginPath();
            stroke.forEach((point) => pen.lineTo(...point));
            pen.stroke();
        }
        const file = await new Promise((resolve) => canvas.toBlob(resolve));
        return [ofStrokes(placed), await ofFile(file)];
    }"""
    for size in (0.5, 1.1):
        for digit, strokes in STROKES.items():
            for pixels in page.evaluate(code, [strokes, size]):
                asked = {"pixels": pixels, "label": digit, "models": ["kernels", "network"]}
                best = max(side["precision"][9] for side in show.search(asked)["found"])
                assert best >= 0.7, digit


def test_a_finger_draws_as_well(opened, address):
    page = opened(address, NARROW, touch=True)
    page.wait_for_selector(".tile")
    page.locator('input[value="draw"]').check(force=True)
    with page.expect_response("**/show/search") as response:
        page.locator("#pad").tap()
    pixels = response.value.request.post_data_json["pixels"]  # a dot, in the middle
    assert max(pixels) == 16
    assert max(*pixels[:8], *pixels[56:]) == 0


def test_a_file_is_uploaded(page, show):
    Image = pytest.importorskip("PIL.Image")
    ink = show.data.query.images[3].astype(int)
    for picture in (255 - ink * 15, ink * 15):  # black on white, and white on black
        content = BytesIO()
        Image.fromarray(picture.astype("uint8")).save(content, "PNG")
        file = {"name": "digit.png", "mimeType": "image/png", "buffer": content.getvalue()}
        page.locator('input[value="upload"]').check(force=True)
        asked, _ = searched(page, lambda file=file: page.locator("#file").set_input_files(file))
        assert asked["pixels"] == [round(16 * v / ink.max()) for v in ink.ravel()]
    wrong = {"name": "notes.txt", "mimeType": "image/png", "buffer": b"no picture"}
    page.locator("#file").set_input_files(wrong)
    page.wait_for_selector("#trouble:not([hidden])")
    assert "notes.txt is no picture" in page.locator("#trouble").inner_text()


def test_the_keyboard_is_enough(page, show):
    """From the top: a picture of the gallery, a pixel, the slider, the path and the map."""

    def tab_to(selector):
        for _ in range(40):
            page.keyboard.press("Tab")
            if page.evaluate("s => document.activeElement.matches(s)", selector):
                return
        raise AssertionError(f"Tab does not lead to {selector}")

    tab_to('input[name="picked"]')
    asked, _ = searched(page, lambda: page.keyboard.press("ArrowRight"))
    after = show.gallery.index(show.about["first"]) + 1
    assert asked["query"] == show.gallery[after % len(show.gallery)]
    tab_to("[role=gridcell]")
    page.keyboard.press("ArrowDown")
    before = list(show.data.query.X[asked["query"]])
    asked, _ = searched(page, lambda: page.keyboard.press("Backspace"))
    asked, _ = searched(page, lambda: page.keyboard.press("Space"))
    assert asked["pixels"] == [*before[:8], 8, *before[9:]]
    tab_to("#k")
    page.keyboard.press("ArrowRight")
    assert page.locator(".model.left .tile").count() == 21
    tab_to("#play")
    page.keyboard.press("Enter")
    assert page.locator("#play").inner_text() == "Pause"
    page.keyboard.press("Enter")
    tab_to("#iteration")
    page.keyboard.press("End")
    assert "refinement" in page.locator("#iteration-told").inner_text()
    tab_to("#map svg")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    said = page.locator("#said").inner_text()
    row = int(re.fullmatch(r"A \d, number (\d+)", said)[1])
    with page.expect_response("**/show/search") as response:
        page.keyboard.press("Enter")
    assert response.value.request.post_data_json["base"] == row


def test_the_path_is_shown_step_by_step(page, show):
    path = show.path
    n = len(path["steps"])
    last = max(at for at, step in enumerate(path["steps"]) if step["mu"] is not None)
    for at in (0, 3, last, n - 1):
        page.locator("#iteration").fill(str(at))
        apart = sum((p["Z"][at] ^ p["H"][at]).bit_count() for p in path["points"])
        assert page.locator("#matrix .lit").count() == 2 * apart
        step = path["steps"][at]
        story = page.locator("#story").inner_text()
        percent = re.search(r"([\d.]+)%\.$", story)[1]
        assert [float(percent)] == percents(step["precision"])
        if step["violations"]:
            assert f"{step['violations']:,} bits" in story
    assert page.locator("#path-charts .marker circle").count() > 0
    page.locator("#iteration").fill("0")
    page.locator("#matrix .row").nth(4).click()
    point = path["points"][4]
    assert page.locator("#follow").input_value() == str(point["row"])
    assert page.locator(".strips .lit").count() == 3 * (point["Z"][0] ^ point["H"][0]).bit_count()


def test_points_of_the_map_are_picked_and_followed(page, show):
    row = 11
    dot = page.locator("#map .dot").nth(row)
    with page.expect_response("**/show/search") as response:
        page.locator("#map").scroll_into_view_if_needed()
        box = dot.bounding_box()
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    picked = response.value.request.post_data_json["base"]
    places = show.map["base"]
    assert max(abs(places[2 * picked + i] - places[2 * row + i]) for i in (0, 1)) < 15
    with page.expect_response(f"**/show/path/{picked}"):
        page.get_by_role("button", name="Follow its code").click()
    page.wait_for_function(
        "row => document.querySelector('#follow').value === String(row)", arg=picked
    )
    first = show.path["points"][0]["row"]
    for followed in (first, picked):  # the guest of the list can be chosen again
        page.locator("#follow").select_option(str(followed))
        assert page.locator("#follow").input_value() == str(followed)
    for side, method in (("left", "two-step"), ("right", "refined")):
        page.locator("#colour").select_option(side)
        colour = dot.evaluate("dot => getComputedStyle(dot).fill")
        wanted = show.codes(method)["colours"][row]
        assert colour == f"rgb({', '.join(str(int(wanted[i : i + 2], 16)) for i in (1, 3, 5))})"
    page.locator("#lines").select_option("left")
    assert page.locator("#map rect.found").count() == 0
    assert page.locator("#map circle.found").count() == 20


CONTRAST = """() => {
    const probe = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
    const rgba = (colour) => {
        probe.clearRect(0, 0, 1, 1);
        probe.fillStyle = colour;
        probe.fillRect(0, 0, 1, 1);
        return [...probe.getImageData(0, 0, 1, 1).data];
    };
    const light = (colour) => {
        const [r, g, b] = rgba(colour).map((v) => v / 255)
            .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = (element) => {
        for (; element; element = element.parentElement) {
            const colour = getComputedStyle(element).backgroundColor;
            if (rgba(colour)[3] === 255) return colour;
        }
        return "white";
    };
    const poor = [];
    let n = 0;
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const element = walker.currentNode.parentElement;
        const text = walker.currentNode.textContent.trim();
        if (!text || !element.checkVisibility() || element.closest(".unseen, .skip")) continue;
        const style = getComputedStyle(element);
        const colour = element.namespaceURI.endsWith("svg") ? style.fill : style.color;
        const [a, b] = [light(colour), light(behind(element))];
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        n += 1;
        if (ratio < 4.5) poor.push(`${text.slice(0, 40)}: ${ratio.toFixed(2)}`);
    }
    return [n, poor];
}"""
NAMELESS = """() => [...document.querySelectorAll(
        "input, select, textarea, button, canvas, a, svg:not([aria-hidden]), img, [tabindex='0'], "
        + "[role=grid], [role=gridcell], section, article, fieldset, table")]
    .filter((element) => {
        const by = element.getAttribute("aria-labelledby");
        const named = element.getAttribute("aria-label")
            || (by && document.getElementById(by)?.textContent.trim())
            || [...(element.labels ?? [])].some((label) => label.textContent.trim()
                || label.querySelector("img")?.alt)
            || (["BUTTON", "A"].includes(element.tagName) && element.textContent.trim())
            || (element.tagName === "IMG" && element.alt)
            || (element.tagName === "FIELDSET" && element.querySelector("legend")?.textContent)
            || (element.tagName === "TABLE" && element.querySelector("th"));
        return !named;
    }).map((element) => element.outerHTML.slice(0, 120))"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [WIDE, NARROW], ids=["wide", "narrow"])
def test_every_look(opened, address, viewport, scheme):
    """Nothing is wider than the screen, text can be read, and every control has a name."""
    page = opened(address, viewport, scheme)
    page.wait_for_selector(".tile")
    page.wait_for_selector("#spot button")
    for source in ("gallery", "draw", "upload"):
        page.locator(f'input[value="{source}"]').check(force=True)
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= viewport["width"]
        n, poor = page.evaluate(CONTRAST)
        assert n > 150
        assert poor == []
        assert page.evaluate(NAMELESS) == []
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 26)"
    assert dark == (scheme == "dark")


def test_what_a_screen_reader_hears(page):
    heard = page.locator("main").aria_snapshot()
    for line in (
        'heading "A picture in sixteen bits" [level=1]',
        'region "Pick a picture"',
        'region "Its nearest neighbours under two models"',
        'slider "k, the number of nearest neighbours": "20"',
        'slider "Iteration"',
        'combobox "First model"',
        'grid "What the models see"',
    ):
        assert line in heard
    assert "precision" in page.locator("#said").inner_text()
    assert page.evaluate("document.documentElement.lang") == "en"
    levels = page.locator("h1, h2, h3").evaluate_all("all => all.map((one) => one.tagName)")
    assert levels[0] == "H1"
    assert levels.count("H1") == 1


def own_application(token=None):
    """A service without a show: as small as the page needs it."""
    app = application(None)
    asked = []

    @app.middleware("http")
    async def guarded(request: Request, call_next):
        is_open = request.url.path == "/" or request.url.path.startswith("/static/")
        if token and not is_open and request.headers.get("Authorization") != f"Bearer {token}":
            return JSONResponse({"error": "a token is needed"}, 401)
        return await call_next(request)

    @app.get("/info")
    def info():
        return {
            **{"name": "auxhash", "version": "1.2", "store": "sqlite", "points": 12345},
            **{"n_bits": 16, "n_features": 3, "images": False, "keeps_points": True},
            "limits": {"k": 1000},
        }

    @app.post("/points/query")
    async def query(request: Request):
        asked.append(await request.json())
        if asked[-1].get("ids") == ["404"]:
            raise HTTPException(404, "there is no point 404")
        hits = [
            {"id": "9223372036854775807", "distance": 0.0, "payload": {"digit": 3}},
            {"id": 4, "distance": 2.0, "payload": {"name": "<b>bold</b>"}},
        ]
        return {"by": "hamming", "results": [{"hits": hits, "cut": False}]}

    return app, asked


@pytest.mark.parametrize("viewport", [WIDE, NARROW], ids=["wide", "narrow"])
def test_points_of_ones_own(opened, viewport):
    own, asked = own_application()
    with served(own) as address:
        page = opened(address, viewport, "dark", expected=["404"])
        page.wait_for_selector("#own-info dd")
        assert not page.locator("#demo").is_visible()
        says_nothing_of_digits(page)
        assert "12,345" in page.locator("#own-info").inner_text()
        assert not page.get_by_text("A picture", exact=True).is_visible()
        page.locator("#own-id").fill("9223372036854775807")
        page.get_by_role("button", name="Search").click()
        page.wait_for_selector("#own-found td")
        assert asked[-1] == {"ids": ["9223372036854775807"], "k": 10, "with_payload": True}
        cells = page.locator("#own-found td").all_inner_texts()
        assert cells[:3] == ["9223372036854775807", "0", '{"digit":3}']
        assert cells[5] == '{"name":"<b>bold</b>"}'
        page.get_by_text("This request, and its answer").click()
        assert '"with_payload": true' in page.locator("#own-request").inner_text()
        assert '"by": "hamming"' in page.locator("#own-answer").inner_text()
        page.get_by_text("This request, and its answer").click()
        page.locator("#own-id").fill("404")
        page.keyboard.press("Enter")
        page.wait_for_selector("#trouble:not([hidden])")
        assert page.locator("#trouble").inner_text() == "there is no point 404"
        page.locator("#own-id").fill("doc 7/b")
        with page.expect_response("**/points/query"):
            page.keyboard.press("Enter")
        assert asked[-1]["ids"] == ["doc 7/b"]
        page.locator('input[name="own"][value="vector"]').check(force=True)
        page.locator("#own-vector").fill("1, 2")
        page.get_by_role("button", name="Search").click()
        assert "wants 3 numbers" in page.locator("#trouble").inner_text()
        page.locator("#own-vector").fill("[1, -2.5\n3e2]")
        with page.expect_response("**/points/query"):
            page.get_by_role("button", name="Search").click()
        assert asked[-1]["vectors"] == [[1, -2.5, 300]]
        assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
        assert page.evaluate(CONTRAST)[1] == []
        assert page.evaluate(NAMELESS) == []


def test_a_token_is_asked_for(opened):
    own, _ = own_application("secret")
    with served(own) as address:
        page = opened(address, expected=["401"])
        for token, says in (("wrong", "asks for its token"), ("secret", "That token is wrong")):
            page.wait_for_selector("#token-form:not([hidden])")
            assert says in page.locator("#token-form label").inner_text()
            says_nothing_of_digits(page)
            page.locator("#token").fill(token)
            with page.expect_response("**/show"):
                page.keyboard.press("Enter")
        page.wait_for_selector("#own-info dd")
        assert not page.locator("#token-form").is_visible()


def says_nothing_of_digits(page):
    """The digits of the demonstration are not on the page of somebody's photos."""
    text = page.locator("body").inner_text().lower()
    assert not any(word in text for word in ("digit", "sixteen bits", "two-step"))


def test_swagger_ui_sends_a_request(opened, url, hasher):
    """At /docs, under the service's own policy; samples of answers are shown."""
    application, _ = app.make(lambda: Service(stores.open(url, BITS), hasher), token="a" * 16)
    with served(application, lifespan="on") as address:
        page = opened(address, path="/docs", expected=["404"])  # the icon is the other page's
        operation = page.locator("#operations-points-query_points_query_post")
        operation.get_by_role("button").first.click()
        assert '"by": "hamming"' in operation.locator(".responses-table").inner_text()
        page.get_by_role("button", name="Authorize").first.click()
        page.locator("#auth-bearer-value").fill("a" * 16)
        page.get_by_role("button", name="Apply credentials").click()
        page.get_by_role("button", name="Close").click()
        operation.get_by_role("button", name="Try it out").click()
        operation.locator("textarea").fill('{"codes": ["000000"], "k": 1}')
        with page.expect_response("**/points/query") as answer:
            operation.get_by_role("button", name="Execute").click()
        assert answer.value.json() == {"by": "hamming", "results": [{"hits": [], "cut": False}]}


def test_a_service_that_is_gone_is_told(opened):
    with served(application(small())) as address:
        page = opened(address, expected=["ERR_CONNECTION_REFUSED"])
        page.wait_for_selector(".tile")
    page.locator('input[name="picked"]').nth(3).check(force=True)
    page.wait_for_selector("#trouble:not([hidden])")
    assert page.locator("#trouble").inner_text() == "The service does not answer."
