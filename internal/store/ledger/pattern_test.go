package ledger_test

import (
	"encoding/json"
	"testing"

	"github.com/callyard/callyard/internal/store/ledger"
)

func TestAPointerFindsItsValueOrNothing(t *testing.T) {
	const doc = `{"a":{"b":[1,{"c":null},"x"]},"":0,"/":1,"~":2,"~1":3,"01":4,"é":5}`
	for pointer, found := range map[string]bool{
		"": true, "/a": true, "/a/b": true, "/a/b/0": true, "/a/b/1/c": true, "/a/b/2": true, "/": true, "/~1": true, "/~0": true, "/~01": true, "/01": true, "/é": true,
		"a": false, "/A": false, "/a/b/3": false, "/a/b/-1": false, "/a/b/-": false, "/a/b/00": false, "/a/b/+0": false, "/a/b/2/x": false, "/~": false, "/~2": false, "/a/": false, "//": false,
	} {
		p := ledger.Pattern{Kind: ledger.SameValues, Values: []ledger.Value{{Pointer: pointer}}}
		is, err := p.Of([]byte(doc))
		if (err == nil) != found {
			t.Errorf("%q: %v", pointer, err)
		}
		if found && !is.Fits([]byte(doc)) {
			t.Errorf("%q: it does not fit what it was made of", pointer)
		}
	}
}

func TestPatternDoesNotMatchDuplicateKeys(t *testing.T) {
	p := ledger.Pattern{Kind: ledger.SameValues, Values: []ledger.Value{{Pointer: "/to"}}}
	is, err := p.Of([]byte(`{"to":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{`{"to":"x","to":"y"}`, `{"to":"y","to":"x"}`, `{"to":"x","t\u006f":"x"}`} {
		if is.Fits([]byte(args)) {
			t.Errorf("%s fits", args)
		}
	}
}

func TestAPatternWithoutDigestsFitsNothing(t *testing.T) {
	for _, p := range []ledger.Pattern{{}, {Kind: ledger.ExactArguments}, {Kind: ledger.SameValues}, {Kind: ledger.SameValues, Values: []ledger.Value{{Pointer: ""}}}, {Kind: "all"}} {
		if p.Fits([]byte(`{}`)) {
			t.Errorf("%+v fits", p)
		}
	}
}

func FuzzPatternMatchesItsSource(f *testing.F) {
	f.Add([]byte(`{"a":[1,2]}`), "/a/0")
	f.Add([]byte(`{"a":{"~1":1.0}}`), "/a/~01")
	f.Add([]byte(`[`), "")
	f.Fuzz(func(t *testing.T, args []byte, pointer string) {
		p := ledger.Pattern{Kind: ledger.SameValues, Values: []ledger.Value{{Pointer: pointer}}}
		is, err := p.Of(args)
		if err != nil {
			return
		}
		if !json.Valid(args) && pointer == "" {
			t.Error("something that is no JSON has a value")
		}
		if !is.Fits(args) {
			t.Errorf("%q of %q does not fit itself", pointer, args)
		}
	})
}
