// Package search searches the web with an engine that an operator chose: the built-in
// server "search".
//
// The engines are SearXNG, which an operator hosts, and the services Brave, Tavily and
// Serper, which need a key. It promises answers of a bounded length, and that the key is
// sent to the engine alone: it is in a header, and no redirect is followed.
//
// It reads no page that it finds; package fetch does. Titles and snippets were written by
// others and may try to instruct the model that reads them. No proxy is used.
package search
