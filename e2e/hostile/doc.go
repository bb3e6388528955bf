// Package hostile sends requests that no honest client sends, and counts the responses.
//
// A [Golden] is a valid request of one operation, made from the OpenAPI document of
// the target or, for MCP and the probes, from a table here. From each golden, a seed
// generates any number of damaged requests: broken JSON, wrong types, deep nesting,
// huge numbers, bad UTF-8, duplicate keys, and manipulated methods, paths,
// lengths, encodings and headers. [Attack.Run] sends them over raw connections.
// [Slow] holds connections that never complete their requests.
//
// The same seed gives the same bytes, so a finding names its request by seed,
// operation and number, and [Damaged] reproduces it.
//
// A finding is an unexpected status: 5xx other than 501 and 505 of the HTTP
// server itself, and other than 502, 503 with Retry-After and 504 with a whole problem
// document (or, from the MCP endpoint, a JSON-RPC error); a response that is not HTTP; or a
// refusal that reveals internals.
//
// It refuses to attack anything but loopback.
package hostile
