"use strict";
// Sorts, filters and unfolds what is in this page. Texts become text nodes; nothing is parsed as HTML, nothing loaded.
(() => {
  const TAGS = new Set(["b", "code", "dd", "del", "details", "div", "dl", "dt", "ins", "li", "ol", "p", "pre", "small",
    "span", "strong", "summary", "ul"]);
  const PAGE = 100;
  const PRINTED = 5000;
  const WORDS = { p: "passed", f: "failed", w: "pending", e: "fault of the host", m: "no record" };

  function element(tag, kind, ...children) {
    const made = document.createElement(tag);
    if (kind) made.className = kind;
    made.append(...children);
    return made;
  }

  function build(node) {
    if (typeof node === "string") return document.createTextNode(node);
    const [tag, kind, ...children] = node;
    if (tag === "facts") return build(["dl", "facts", ...pairs(children)]);
    if (!TAGS.has(tag)) throw new Error("not an element of ours");
    const made = element(tag, kind, ...children.map(build));
    if (tag === "details") made.open = made.classList.contains("open");
    if (tag === "pre") made.tabIndex = 0;
    return made;
  }

  function* pairs(texts) {
    for (let at = 0; at < texts.length; at += 2) {
      yield ["div", "", ["dt", "", texts[at]], ["dd", "stranger", texts[at + 1]]];
    }
  }

  async function unpack(id) {
    const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (char) => char.charCodeAt(0));
    const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(plain).text());
  }

  class Tasks {
    constructor(section, index) {
      this.section = section;
      this.key = section.dataset.key;
      this.size = Number(section.dataset.size);
      this.index = index;
      this.table = section.querySelector("table.tasks");
      this.body = this.table.tBodies[0];
      this.rows = [...this.table.tBodies].flatMap((body) => [...body.rows]);
      this.numbers = new Map(this.rows.map((row, number) => [row, number]));
      this.ids = this.rows.map((row) => row.cells[0].textContent);
      this.blocks = new Map();
      this.open = new Map();
      this.page = 0;
      this.sorting = null;
      this.wanted = {};
      this.found = this.rows.map((_, number) => number);
      this.makeTools();
      this.makeSorting();
      this.makePager();
      this.show();
      addEventListener("beforeprint", () => this.show(0, PRINTED));
      addEventListener("afterprint", () => this.show());
      for (const body of [...this.table.tBodies].slice(1)) body.remove();
      if (!this.size) return;
      this.table.addEventListener("click", (event) => {
        const button = event.target.closest("tbody button");
        if (button && this.table.contains(button)) this.toggle(button.closest("tr"));
      });
    }

    // -- what is wanted

    makeTools() {
      const tools = this.section.querySelector(".tools");
      const search = element("input");
      search.type = "search";
      search.addEventListener("input", () => this.want("text", search.value.trim().toLowerCase()));
      const place = element("label", "wide", "Find a task", search);
      tools.append(place);
      const letters = new Set(this.index.status.join(""));
      this.choice(tools, "Status", "status", Object.keys(WORDS).filter((one) => letters.has(one)), (one) => WORDS[one]);
      for (const [title, name] of [["Family", "family"], ["Tag", "tags"], ["Failure", "reasons"]]) {
        const names = this.index.names[name];
        const order = names.map((_, number) => number).sort((one, other) => (names[one] < names[other] ? -1 : 1));
        this.choice(tools, title, name, order.slice(0, 500), (number) => names[number]);
      }
      tools.hidden = false;
    }

    choice(tools, title, name, values, word) {
      if (values.length < 2) return;
      const select = element("select");
      select.append(new Option("all", ""), ...values.map((value) => new Option(word(value), String(value))));
      select.addEventListener("change", () => this.want(name, select.value));
      tools.append(element("label", "", title, select));
    }

    want(name, value) {
      if (value === "") delete this.wanted[name];
      else this.wanted[name] = value;
      this.find();
    }

    matches(number) {
      const { text, status, family, tags, reasons } = this.wanted;
      const index = this.index;
      return (text === undefined || this.ids[number].toLowerCase().includes(text)) &&
        (status === undefined || index.status[number].includes(status)) &&
        (family === undefined || index.family[number] === Number(family)) &&
        (tags === undefined || index.tags[number].includes(Number(tags))) &&
        (reasons === undefined || index.reasons[number].includes(Number(reasons)));
    }

    find() {
      this.found = this.rows.map((_, number) => number).filter((number) => this.matches(number));
      if (this.sorting) this.sort();
      this.page = 0;
      this.show();
    }

    // -- in which order

    makeSorting() {
      for (const head of this.table.tHead.querySelectorAll("th[data-sort]")) {
        const button = element("button", "", ...head.childNodes);
        button.type = "button";
        head.append(button);
        button.addEventListener("click", () => {
          const name = head.dataset.sort;
          const before = this.sorting && this.sorting.name === name ? this.sorting.up : null;
          const up = before === null ? ["id", "family", "status", "reasons"].includes(name) : !before;
          this.sorting = { name, up };
          for (const other of this.table.tHead.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
          head.setAttribute("aria-sort", up ? "ascending" : "descending");
          this.sort();
          this.page = 0;
          this.show();
        });
      }
    }

    value(name, number) {
      const index = this.index;
      if (name === "id") return this.ids[number];
      if (name === "family") return index.names.family[index.family[number]];
      if (name === "reasons") return index.reasons[number].map((one) => index.names.reasons[one]).join() || null;
      return index[name][number];
    }

    sort() {
      const { name, up } = this.sorting;
      const values = new Map(this.found.map((number) => [number, this.value(name, number)]));
      this.found.sort((one, other) => {
        const [first, second] = [values.get(one), values.get(other)];
        if (first === second) return one - other;
        if (first === null) return 1; // what is not known comes last, whatever the order
        if (second === null) return -1;
        return (first < second ? -1 : 1) * (up ? 1 : -1);
      });
    }

    // -- which part of it

    makePager() {
      const [back, next] = ["Previous", "Next"].map((word) => Object.assign(element("button", "", word), { type: "button" }));
      this.told = element("p");
      this.told.setAttribute("role", "status");
      back.addEventListener("click", () => this.turn(-1));
      next.addEventListener("click", () => this.turn(1));
      [this.back, this.next] = [back, next];
      this.table.parentElement.after(element("div", "pager", back, next, this.told));
    }

    turn(pages) {
      this.page += pages;
      this.show();
      this.section.scrollIntoView();
    }

    show(start = this.page * PAGE, most = PAGE) {
      const shown = this.found.slice(start, start + most);
      const rows = [];
      for (const number of shown) {
        const row = this.rows[number];
        this.dress(row);
        rows.push(row);
        if (this.open.has(number)) rows.push(this.open.get(number));
      }
      this.body.replaceChildren(...rows);
      const total = this.found.length;
      const all = total === this.rows.length ? "" : ` of ${this.rows.length.toLocaleString("en")}`;
      const range = total > shown.length ? `${(start + 1).toLocaleString("en")} to ${(start + shown.length).toLocaleString("en")} of ` : "";
      const one = this.rows.length === 1 ? "task" : "tasks";
      const words = total ? `${range}${total.toLocaleString("en")}${all} ${one}` : "No task is like that.";
      this.told.textContent = this.table.caption.querySelector(".shown").textContent = words;
      this.back.disabled = this.page === 0;
      this.next.disabled = start + PAGE >= total;
      this.back.hidden = this.next.hidden = total <= PAGE;
    }

    dress(row) {
      const head = row.cells[0];
      if (head.firstElementChild || !this.size) return;
      const button = element("button", "", head.textContent);
      button.type = "button";
      button.setAttribute("aria-expanded", "false");
      head.replaceChildren(button);
    }

    // -- what is behind it

    async toggle(row) {
      const number = this.numbers.get(row);
      const button = row.cells[0].firstElementChild;
      if (this.open.has(number)) {
        this.open.get(number).remove();
        this.open.delete(number);
        button.setAttribute("aria-expanded", "false");
        return;
      }
      const cell = element("td", "", element("div", "inside", "Unpacking…"));
      cell.colSpan = row.cells.length;
      cell.setAttribute("aria-busy", "true");
      const drill = element("tr", "drill", cell);
      this.open.set(number, drill);
      button.setAttribute("aria-expanded", "true");
      row.after(drill);
      history.replaceState(null, "", `#${this.key}-task-${number}`);
      let pieces;
      try {
        pieces = (await this.task(number)).map(build);
      } catch {
        pieces = ["The details could not be unpacked."];
      }
      cell.firstElementChild.replaceChildren(...pieces);
      cell.removeAttribute("aria-busy");
    }

    async task(number) {
      const block = Math.floor(number / this.size);
      if (!this.blocks.has(block)) this.blocks.set(block, unpack(`${this.key}-block-${block}`));
      return (await this.blocks.get(block))[number % this.size];
    }

    async reveal(number) {
      if (!(number in this.rows) || !this.size) return;
      if (!this.found.includes(number)) {
        this.wanted = {};
        for (const field of this.section.querySelectorAll(".tools input, .tools select")) field.value = "";
        this.find();
      }
      this.page = Math.floor(this.found.indexOf(number) / PAGE);
      this.show();
      const row = this.rows[number];
      if (!this.open.has(number)) await this.toggle(row);
      row.scrollIntoView({ block: "start" });
      row.cells[0].firstElementChild.focus({ preventScroll: true });
    }
  }

  async function start() {
    const tables = new Map();
    for (const section of document.querySelectorAll(".alltasks")) {
      if (section.querySelector("table.tasks")) {
        tables.set(section.dataset.key, new Tasks(section, await unpack(`${section.dataset.key}-index`)));
      }
    }
    document.addEventListener("click", (event) => {
      const column = event.target.closest(".t[data-n]");
      if (column) tables.get(column.parentElement.dataset.run)?.reveal(Number(column.dataset.n));
    });
    const follow = () => {
      const named = /^#(r\d+)-task-(\d+)$/.exec(location.hash);
      if (named) tables.get(named[1])?.reveal(Number(named[2]));
    };
    addEventListener("hashchange", follow);
    follow();
    document.documentElement.dataset.ready = String(Math.round(performance.now()));
  }

  function plain() { // all rows are shown, as without a script
    document.documentElement.dataset.plain = "";
  }

  if (typeof DecompressionStream === "function") start().catch(plain);
  else plain();
})();
