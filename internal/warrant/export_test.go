package warrant

// Parse returns the claims of a warrant without verifying it.
func Parse(text []byte) (*Claims, error) {
	c, _, err := parse(text)
	return c, err
}
