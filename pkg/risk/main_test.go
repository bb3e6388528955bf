package risk

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// mustParse parses a policy and fails the test if it has faults.
func mustParse(t testing.TB, source string) *Policy {
	t.Helper()
	p, err := Parse([]byte(source), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// definition returns a tool definition with these annotations; "" means none.
func definition(annotations string) []byte {
	if annotations == "" {
		return []byte(`{"name":"t","description":"does \"things\"","inputSchema":{"type":"object","properties":{"a":{"type":"string"}}}}`)
	}
	return []byte(`{"name":"t","description":"does \"things\"","inputSchema":{"type":"object","properties":{"a":{"type":"string"}}},"annotations":` + annotations + `}`)
}
