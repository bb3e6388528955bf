// Package rawjson looks into JSON text without decoding it: what is passed on stays
// the bytes that came.
//
// It owns one strict scanner (the grammar of RFC 8259) and what is built on it: the
// members of an object, one of them, a member put in or left out, texts written. Its
// cost is linear in the text, its memory one bit for each open bracket beyond 64, and
// names that travel with every call cost no allocation. It reads exactly what
// encoding/json takes for valid, which a fuzz test holds it to. What it returns points
// into the text that it was given.
//
// It refuses to check that names are unique and that text is UTF-8, which is
// [github.com/callyard/callyard/internal/validate]'s business, and to decode values.
//
// encoding/json/jsontext, as github.com/go-json-experiment/json, has the same purpose.
// BenchmarkMembers, on two cores: this scanner takes 0.65 of the time of a decoder that is
// kept (0.25 µs for a call of 0.3 KB, 48 µs for a result of 64 KB, neither with an
// allocation) and half of that of one for each object, with 4 allocations (352 bytes).
// Objects are looked into in some thirty places, mostly once and small, where a scanner on
// the stack costs nothing and a decoder would have to be pooled. It stays until jsontext is
// part of the standard library without an experiment's switch.
package rawjson
