// How the site's search orders what it finds; Sphinx puts this into searchtools.js (html_search_scorer).
// Guides and references come before records of how the project was made: those name everything.
const PLACES = [
  ["internals/", -10],
  ["reference/change-events", 3],
  ["reference/library-api", -2],
  ["guides/", 2],
  ["tutorial", 2],
  ["reference/", 1],
];
var Scorer = {
  score: ([page, _title, _anchor, _description, score]) => {
    const place = PLACES.find(([start]) => page.startsWith(start));
    return score + (place ? place[1] : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};

// Sphinx appends no summary (null) of a place without text, such as an entry of the index, and fails.
document.addEventListener("DOMContentLoaded", () => {
  const summaryOf = Search.makeSearchSummary;
  Search.makeSearchSummary = (...given) =>
    summaryOf(...given) ?? document.createElement("p");
});
