package eval

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func preset(t testing.TB, name string) *Reward {
	t.Helper()
	r, err := RewardPreset(name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func toolsNamed(names ...string) (tools []Tool) {
	for _, name := range names {
		tools = append(tools, Tool{Name: name})
	}
	return tools
}
