// Package sse reads and writes server-sent events, the text/event-stream of the HTML
// standard.
//
// It owns the format. A [Reader] takes what the standard takes (lines that end in LF,
// CR LF or CR, a byte order mark) within a limit, and gives data out without keeping
// it. A [Writer] sends each event whole with a deadline, so that data comes out of a
// reader as it went in, whatever line breaks it has.
//
// It refuses to connect again, to know what an event means, and to send before the
// first event: until then the answer can still be another one.
package sse
