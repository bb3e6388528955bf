package jsonpointer

import "testing"

func TestTokenStandsForItsName(t *testing.T) {
	for name, token := range map[string]string{"": "", "a b": "a b", "a/b": "a~1b", "m~n": "m~0n", "~1": "~01", "/~0": "~1~00"} {
		if got := Token(name); got != token {
			t.Errorf("the token of %q is %q, want %q", name, got, token)
		}
		if got := Name(token); got != name {
			t.Errorf("the name of %q is %q, want %q", token, got, name)
		}
	}
	if got := Name("a~2b~"); got != "a~2b~" {
		t.Errorf("%q", got)
	}
}
