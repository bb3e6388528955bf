package console

import "testing"

// Pages are parsed when they are first shown, so a broken page is not detected at the start.
func TestEveryConsolePageParses(t *testing.T) {
	pages := newPages()
	for _, name := range pageNames {
		if page, err := pages.Page(name); err != nil || page.Lookup("page") == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := pages.Page("none"); err == nil {
		t.Error("a page that is not there was read")
	}
}

func TestDurationsHaveSuitableUnits(t *testing.T) {
	for s, want := range map[float64]string{
		0: "0 µs", 0.000019: "19 µs", 0.0684: "68.4 ms", 1.5: "1.5 s", 59.4: "59.4 s", 59.7: "1 min", 60: "1 min", 100: "1 min 40 s", 2300: "38 min 20 s", 3600: "1 h",
		5230: "1 h 27 min", 47*3600 + 59*60: "47 h 59 min", 48 * 3600: "2 days", 50 * 3600: "2 days 2 h",
	} {
		if got := seconds(s); got != want {
			t.Errorf("%v s are %q, not %q", s, got, want)
		}
	}
}
