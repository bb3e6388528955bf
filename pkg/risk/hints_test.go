package risk

import "testing"

func TestHintsAreReadExactly(t *testing.T) {
	for source, want := range map[string]hints{
		`{"annotations":{"readOnlyHint":true}}`:                                             {readOnly: ok},
		` { "annotations" : { "destructiveHint" : false , "readOnlyHint":false } , "x":1}`:  {readOnly: no, destructive: no},
		`{"annotations":{"title":"a \"}{ b","destructiveHint":true}}`:                       {destructive: ok},
		`{"annotations":{"readOnly\u0048int":true}}`:                                        {readOnly: ok},
		`{"\u0061nnotations":{"readOnlyHint":true}}`:                                        {readOnly: ok},
		`{"inputSchema":{"x":["]","}",{"\\":"\\\""}]},"annotations":{"readOnlyHint":true}}`: {readOnly: ok},
		// Keys are case-sensitive.
		`{"annotations":{"ReadOnlyHint":true}}`: {},
		`{"annotations":{"readonlyhint":true}}`: {},
		`{"Annotations":{"readOnlyHint":true}}`: {},
		// Parsers disagree on these, so they are ignored.
		`{"annotations":{"readOnlyHint":true,"readOnlyHint":false}}`:                     {},
		`{"annotations":{"readOnlyHint":false,"readOnlyHint":true}}`:                     {},
		`{"annotations":{"readOnlyHint":true,"readOnly\u0048int":false}}`:                {},
		`{"annotations":{"readOnlyHint":true},"annotations":{"readOnlyHint":false}}`:     {},
		`{"annotations":{"readOnlyHint":true},"\u0061nnotations":{"readOnlyHint":true}}`: {},
		`{"annotations":{"readOnlyHint":"true"}}`:                                        {},
		`{"annotations":{"readOnlyHint":1}}`:                                             {},
		`{"annotations":null}`:                                                           {},
		`{"annotations":[{"readOnlyHint":true}]}`:                                        {},
		// In other places they are not hints.
		`{"readOnlyHint":true}`: {},
		`{"description":"\"annotations\":{\"readOnlyHint\":true}"}`: {},
		`{"inputSchema":{"annotations":{"readOnlyHint":true}}}`:     {},
		`{"_meta":{"annotations":{"readOnlyHint":true}}}`:           {},
		// Invalid JSON has no hints.
		`{"annotations":{"readOnlyHint":true}`: {}, `{"annotations":{"readOnlyHint":true`: {}, `{"annotations`: {}, `{"annotations":"\`: {}, `annotations`: {}, ``: {},
	} {
		if got := hintsOf([]byte(source)); got != want {
			t.Errorf("%s: %+v, want %+v", source, got, want)
		}
	}
}
