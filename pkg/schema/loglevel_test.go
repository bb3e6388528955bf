package schema

import "testing"

func TestALogLevelCoversItselfAndWhatIsMoreSevere(t *testing.T) {
	for _, c := range []struct {
		wanted, level string
		want          bool
	}{
		{"info", "info", true}, {"info", "emergency", true}, {"info", "debug", false},
		{"debug", "loud", false}, {"", "info", false}, {"loud", "info", false}, {"emergency", "alert", false},
	} {
		if got := LogLevelCovers(c.wanted, c.level); got != c.want {
			t.Errorf("%q covers %q: %v", c.wanted, c.level, got)
		}
	}
}
