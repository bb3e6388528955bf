package console

// Back is the page that somebody is led to.
func Back(text string) string { return back(text) }

// Pretty is JSON with line breaks.
func Pretty(raw string) string { return string(pretty([]byte(raw))) }

// ReadMetrics reads metrics twice, and takes figures between them.
func ReadMetrics(text []byte) {
	c := readCounters(text)
	quantile(nil, c.buckets, 0.99)
}

// Copies are the commands and programs of a call.
func Copies(frontDoor, server, tool, arguments string) (all []string) {
	for _, c := range copiesOf(frontDoor, server, tool, arguments, false) {
		all = append(all, c.Text)
	}
	return all
}
