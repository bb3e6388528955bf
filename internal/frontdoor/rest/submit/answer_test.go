package submit

import "testing"

func TestOutcomeIsAppendedToTheServersBytes(t *testing.T) {
	for given, want := range map[string]string{
		`{}`:                  `{"outcome":"completed"}`,
		"{ \n}":               "{ \n" + `"outcome":"completed"}`,
		`{"content":[ ]} `:    `{"content":[ ],"outcome":"completed"}`,
		`{"a":{"outcome":1}}`: `{"a":{"outcome":1},"outcome":"completed"}`,
		`{"outcome":"held"}`:  `{"outcome":"completed"}`,
		`{"a": 1.0,"outcome":{"x":[1,2]},"b" :2}`: `{"a": 1.0,"b" :2,"outcome":"completed"}`,
		`7`: `7`,
	} {
		if got := string(withOutcome([]byte(given), OutcomeCompleted)); got != want {
			t.Errorf("%s is %s, want %s", given, got, want)
		}
	}
}
