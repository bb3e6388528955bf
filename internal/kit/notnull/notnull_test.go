package notnull

import (
	"encoding/json"
	"testing"
)

func TestNilListsAndMapsAreEncodedAsEmpty(t *testing.T) {
	for want, v := range map[string]any{
		`[]`: List[string](nil), `["a"]`: List([]string{"a"}), `{}`: Map[string, int](nil), `{"a":1}`: Map(map[string]int{"a": 1}),
	} {
		if got, err := json.Marshal(v); err != nil || string(got) != want {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
	}
}
