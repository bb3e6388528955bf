package session

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callyard/callyard/internal/kit/mcpwire"
)

// fixedLink answers each request with the same result.
type fixedLink struct {
	noLink
	result string
}

func (l fixedLink) send(r *Running) bool {
	r.end(Outcome{Body: []byte(l.result), Started: true})
	return true
}

func TestSkippedEntriesOfAListAreLoggedTogether(t *testing.T) {
	var log bytes.Buffer
	s := newSession(newPool(Config{}, slog.New(slog.NewTextHandler(&log, nil)), func() {}))
	s.link = fixedLink{result: `{"tools":[` + strings.Repeat(`{},`, 1000) + strings.Repeat(`{"name":"`+strings.Repeat("a", 4<<10)+`"},`, 1001) + `{"name":"b"}]}`}
	var found []json.RawMessage
	if err := readList(t.Context(), s, list{mcpwire.MethodListTools, "tools", "name", &found, true}); err != nil {
		t.Fatal(err)
	}
	if len(found) != 2 {
		t.Errorf("%d entries were kept", len(found))
	}
	text := log.String()
	if n := strings.Count(text, "\n"); n != 2 || strings.Count(text, "entries=1000") != 2 {
		t.Errorf("%d lines were logged: %.2000s", n, text)
	}
	if len(text) > 4<<10 {
		t.Errorf("the log has %d bytes", len(text))
	}
}

// failingLink answers each request with an error.
type failingLink struct{ noLink }

func (failingLink) send(r *Running) bool {
	r.end(Outcome{Started: true, Err: rpcFault("s", []byte(`{"code":-32603,"message":"the database is down"}`))})
	return true
}

func TestListsThatCannotBeReadAreLoggedLessAndLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		p := newPool(Config{Pinned: true}, slog.New(slog.NewTextHandler(&log, nil)), func() {})
		s := newSession(p)
		s.link, s.about = failingLink{}, &mcp.InitializeResult{Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}}
		p.all[s] = struct{}{}
		s.listChanged()
		p.work.Go(p.offers.run)
		time.Sleep(10 * time.Minute)
		p.cancel()
		p.work.Wait()
		if n := strings.Count(log.String(), "\n"); n < 2 || n > 10 {
			t.Errorf("%d lines in 10 minutes", n)
		}
	})
}
