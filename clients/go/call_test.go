package callyard

import "testing"

func TestNilArgumentsAreAnEmptyObject(t *testing.T) {
	for name, arguments := range map[string]any{
		"nil": nil, "a nil map": map[string]any(nil), "a nil pointer": (*struct{ Message string })(nil),
	} {
		doer := &refusing{}
		client, err := New("http://callyard.test", "", WithHTTPClient(doer))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Call(t.Context(), "demo", "echo", arguments); err != nil {
			t.Fatal(err)
		}
		if want := `{"server":"demo","tool":"echo"}`; doer.bodies[0] != want {
			t.Errorf("%s: sent %s, want %s", name, doer.bodies[0], want)
		}
	}
}
