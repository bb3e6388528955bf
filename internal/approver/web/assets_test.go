package web

import "testing"

// Pages are parsed when they are first shown, so a broken page is not detected at the start.
func TestEveryPageTemplateParses(t *testing.T) {
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
