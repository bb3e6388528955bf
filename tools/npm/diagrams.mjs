// Renders docs/diagrams/*.dot as docs/images/*.svg. Each SVG names the digest of its
// source, by which a test sees that it is current.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { basename, join } from "node:path";
import { instance } from "@viz-js/viz";

const docs = fileURLToPath(new URL("../../docs/", import.meta.url));
const viz = await instance();
for (const name of readdirSync(join(docs, "diagrams")).filter((n) => n.endsWith(".dot")).sort()) {
  const source = readFileSync(join(docs, "diagrams", name), "utf8");
  const digest = createHash("sha256").update(source).digest("hex");
  const svg = viz.renderString(source, { format: "svg", engine: "dot" });
  const at = svg.indexOf("<svg");
  const target = basename(name, ".dot") + ".svg";
  writeFileSync(join(docs, "images", target), `<?xml version="1.0" encoding="UTF-8"?>\n<!-- made of docs/diagrams/${name} by make diagrams; source sha256:${digest} -->\n` + svg.slice(at));
  console.log("docs/images/" + target);
}
