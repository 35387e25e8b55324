"use strict";
// Shows how far a run has come, as the server tells it. Texts become text nodes.
(() => {
  const by = (id) => document.getElementById(id);
  const number = (value) => value.toLocaleString("en");

  function time(seconds) {
    if (seconds < 60) return `${Math.round(seconds)} s`;
    const minutes = Math.round(seconds / 60);
    return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  }

  function pace(state) {
    const parts = [];
    if (state.rate) parts.push(state.rate >= 1 ? `${state.rate.toFixed(1)}/s` : `${(state.rate * 60).toFixed(1)}/min`);
    if (state.left) parts.push(`${time(state.left)} left`);
    if (state.tokens) parts.push(`${number(state.tokens)} tokens`);
    if (state.cost !== null) parts.push(`$ ${state.cost.toFixed(2)}`);
    return parts.join(" · ");
  }

  function line(name, told, status) {
    const small = document.createElement("small");
    small.textContent = told;
    const item = document.createElement("li");
    item.className = status ? `stranger m-${status}` : "stranger";
    item.append(`${name} `, small);
    return item;
  }

  function show(state) {
    by("bar").max = Math.max(1, state.planned);
    by("bar").value = state.done;
    by("done").textContent = number(state.done);
    by("planned").textContent = number(state.planned);
    by("pace").textContent = pace(state);
    by("running").textContent = number(state.running);
    by("phase").textContent = state.finished ? "finished" : "under way";
    by("came").hidden = !state.finished;
    by("busy").hidden = state.finished;
    by("score").textContent = state.score === null ? "–" : `${(state.score * 100).toFixed(1)} %`;
    by("told").textContent = state.finished ? "The report" : "The report so far";
    for (const item of by("statuses").children) {
      item.firstElementChild.textContent = number(state.statuses[item.dataset.status] || 0);
    }
    by("under").replaceChildren(...state.under_way.map((one) => line(one.name, `${one.phase} ${time(one.since)}`)));
    const known = ["passed", "failed", "pending", "error"];
    by("last").replaceChildren(
      ...state.last.map((one) => line(one.name, one.told, known.includes(one.status) ? one.status : "")));
    document.documentElement.dataset.ready = String(state.done);
  }

  const source = new EventSource("events");
  source.onmessage = (message) => {
    const state = JSON.parse(message.data);
    show(state);
    if (state.finished) source.close();
  };
})();
