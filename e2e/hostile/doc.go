// Package hostile sends what no honest client sends, and counts the answers.
//
// A [Golden] is a good request of one operation, made from the OpenAPI document of
// whoever is attacked or, for MCP and the probes, from a table here. A seed makes of
// it as many damaged ones as are asked for: broken JSON, wrong types, deep nesting,
// huge numbers, bad UTF-8, keys that appear twice, tricks with methods, paths,
// lengths, encodings and headers. [Attack.Run] sends them over raw connections.
// [Slow] holds connections that never end what they began.
//
// The same seed makes the same bytes, so a finding names its request by seed,
// operation and number, and [Damaged] makes it again.
//
// A finding is a status that is not planned: 5xx other than 501 and 505 of the HTTP
// server itself, and other than 502, 503 with Retry-After and 504 with a whole problem
// document (or, from the MCP face, a JSON-RPC error); an answer that is no HTTP; a
// refusal that tells of internals.
//
// It refuses to attack anything but loopback.
package hostile
