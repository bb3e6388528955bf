package records

import "testing"

func FuzzIDHasExactlyOneSpelling(f *testing.F) {
	f.Add("call_06b2t8m3c0w3v2q5n7k9a1d4fz")
	f.Add("batch_06b2t8m3c0w3v2q5n7k9a1d4fz")
	f.Add("call_zzzzzzzzzzzzzzzzzzzzzzzzzz")
	f.Add("_00000000000000000000000000")
	f.Add("")
	f.Fuzz(func(t *testing.T, id string) {
		k, ok := keyOf(id)
		if !ok {
			return
		}
		if again := id[:len(id)-keyText] + k.String(); again != id {
			t.Fatalf("%q is the key of %q", id, again)
		}
		if usual, ok := keyOf(string(k.id())); !ok || usual != k || !usualPrefix(k.id()) {
			t.Fatalf("%q is %q with the usual prefix", id, k.id())
		}
	})
}
