package warrant

// Parse reads what a warrant says, which proves nothing.
func Parse(text []byte) (*Claims, error) {
	c, _, err := parse(text)
	return c, err
}
