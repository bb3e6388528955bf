// Package sse reads and writes server-sent events, the text/event-stream of the HTML
// standard.
//
// It owns the format. A [Reader] accepts the format of the standard (lines that end in LF, CR LF
// or CR, a byte order mark) within a limit, and returns data without keeping it. A [Writer]
// sends each event as a whole with a deadline. Data with any line breaks survives a round trip
// through writer and reader.
//
// It does not reconnect or interpret events. It sends nothing before the first event, so that
// the handler can still send another response until then.
package sse
