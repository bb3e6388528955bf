package confirm

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

func TestRedisClientMessagesAreLogged(t *testing.T) {
	var text bytes.Buffer
	redisLog{slog.New(slog.NewTextHandler(&text, nil))}.Printf(t.Context(), "pool: %d of %s", 3, "many")
	if got := text.String(); !strings.Contains(got, "level=WARN") || !strings.Contains(got, `"pool: 3 of many"`) {
		t.Error(got)
	}
	text.Reset()
	redisLog{slog.New(slog.NewTextHandler(&text, nil))}.Printf(t.Context(), "sentinel: new master=%q addr=%q", "main", "host:1")
	if got := text.String(); !strings.Contains(got, "level=INFO") {
		t.Errorf("the message of a Sentinel that works is %s", got)
	}
}
