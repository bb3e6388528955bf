package episode

import "testing"

func TestASessionIsRefusedWhereAServerCannotKeepState(t *testing.T) {
	for transport, want := range map[string]struct{ own, refused bool }{
		"builtin": {}, "native": {}, "http": {own: true}, "sse": {own: true}, "websocket": {own: true},
		"stdio": {refused: true}, "attach": {own: true}, "openapi": {refused: true}, "tool_endpoint": {refused: true},
	} {
		if own, why := bySession(transport); own != want.own || (why != "") != want.refused {
			t.Errorf("%s: own %v, refused %q", transport, own, why)
		}
	}
}
