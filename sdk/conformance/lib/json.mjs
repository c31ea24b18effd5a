// Slices of JSON text, to compare what was sent byte for byte.

/** Returns the source text of each element of the array in the member `name` of a JSON object. */
export function elementTexts(json, name) {
  const start = memberStart(json, name);
  if (start < 0 || json[start] !== "[") return [];
  const texts = [];
  let at = skipSpace(json, start + 1);
  while (at < json.length && json[at] !== "]") {
    const end = valueEnd(json, at);
    texts.push(json.slice(at, end));
    at = skipSpace(json, end);
    if (json[at] === ",") at = skipSpace(json, at + 1);
  }
  return texts;
}

/** Returns the position of a member's value in the outermost object, or -1. */
function memberStart(json, name) {
  let at = skipSpace(json, skipSpace(json, 0) + 1);
  while (at < json.length && json[at] === '"') {
    const end = valueEnd(json, at);
    const member = JSON.parse(json.slice(at, end));
    const value = skipSpace(json, skipSpace(json, end) + 1);
    if (member === name) return value;
    at = skipSpace(json, valueEnd(json, value));
    if (json[at] === ",") at = skipSpace(json, at + 1);
  }
  return -1;
}

const skipSpace = (json, at) => {
  while (" \t\r\n".includes(json[at] ?? "x")) at++;
  return at;
};

/** Returns the position after the value that starts at `at`. The JSON is known to be valid. */
function valueEnd(json, at) {
  let depth = 0;
  for (; at < json.length; at++) {
    const one = json[at];
    if (one === '"') {
      for (at++; json[at] !== '"'; at++) if (json[at] === "\\") at++;
      if (depth === 0) return at + 1;
    } else if (one === "{" || one === "[") depth++;
    else if (one === "}" || one === "]") {
      if (depth === 0) return at;
      if (--depth === 0) return at + 1;
    } else if (depth === 0 && (one === "," || " \t\r\n".includes(one))) return at;
  }
  return at;
}

/** Returns the nesting depth of a value. */
export function depthOf(value) {
  if (typeof value !== "object" || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}
