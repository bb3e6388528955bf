package spreadsheet

import "testing"

func TestFormulaPrefixesAreEscaped(t *testing.T) {
	for text, want := range map[string]string{"": "", "a=1": "a=1", "=1": "'=1", "+1": "'+1", "-1": "'-1", "@a": "'@a", "\ta": "'\ta", "\ra": "'\ra", "ü": "ü"} {
		if got := Text(text); got != want {
			t.Errorf("%q becomes %q, not %q", text, got, want)
		}
	}
}
