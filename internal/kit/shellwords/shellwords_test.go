package shellwords

import "testing"

func TestQuotedWordsAreOneWordOfAShell(t *testing.T) {
	for text, want := range map[string]string{
		"": "''", "plain/path-1.json": "plain/path-1.json", "a b": "'a b'", "it's": `'it'\''s'`, "$HOME": "'$HOME'", "a\nb": "'a\nb'", "ä": "'ä'",
		"http://127.0.0.1:8080": "http://127.0.0.1:8080",
	} {
		if got := Quote(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestNoArgumentIsTakenForAFlag(t *testing.T) {
	if got, want := Arguments("demo", "echo", `{"a":1}`), `demo echo '{"a":1}'`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := Arguments("demo", "--url=https://x"), `-- demo '--url=https://x'`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
