// Package search searches the web with an engine that the operator chose: the built-in server
// "search".
//
// The engines are SearXNG, which an operator hosts, and the services Brave, Tavily and Serper,
// which need a key. Results have a limited length. The key is sent only to the engine: it is in a
// header, and redirects are not followed.
//
// The package does not read the pages that it finds; package fetch does. Titles and snippets were
// written by others and may try to instruct the model that reads them. No proxy is used.
package search
