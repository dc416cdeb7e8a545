"use strict";
// A click on a column's heading sorts the table by it, a second click the other way; undefined values stay last.
const compare = (a, b) => {
  if (a.number !== b.number) return a.number < b.number ? -1 : 1;
  return a.text.localeCompare(b.text, "en", { numeric: true });
};
const keyOf = (row, column) => {
  const cell = row.cells[column];
  // Numbers come before words, whose number is the same.
  return { row, undefined: "undefined" in cell.dataset, number: Number(cell.dataset.number ?? Infinity), text: cell.textContent };
};
for (const table of document.querySelectorAll("table.sortable")) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    heading.querySelector("button").addEventListener("click", () => {
      const descending = heading.getAttribute("aria-sort") === "ascending";
      for (const other of headings) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
      const keys = [...table.tBodies[0].rows].map((row) => keyOf(row, column));
      keys.sort((a, b) => a.undefined - b.undefined || (descending ? compare(b, a) : compare(a, b)));
      table.tBodies[0].append(...keys.map((key) => key.row));
    });
  });
}
// What is folded is printed too.
addEventListener("beforeprint", () => {
  for (const folded of document.querySelectorAll("details")) folded.open = true;
});
