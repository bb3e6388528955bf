package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/mcptest"
)

// Lists of calls are what people work through after a fault, so a settled call has to leave the list of
// unknown calls, and a call that runs again must not appear twice.
func TestSettledCallsLeaveTheListOfUnknownCalls(t *testing.T) {
	t.Parallel()
	d := startUp(t, setup{servers: serversFile(t, map[string]entry{"books": scripted(mcptest.Echo)})})
	d.waitServers(t, 1, "books")
	crash := func() string {
		t.Helper()
		d.waitServers(t, 1, "books")
		a := d.ask(t, "POST", "/servers/books/tools/crash", `{}`, "Prefer: respond-async")
		id := strings.TrimPrefix(a.header.Get("Location"), "/calls/")
		if s := d.callState(t, id); a.status != http.StatusAccepted || s.State != "unknown" {
			t.Fatalf("%d %s; the call is %+v", a.status, a.body, s)
		}
		return id
	}
	settle := func(id, as string) {
		t.Helper()
		if a := d.ask(t, "POST", "/calls/"+id+"/settle", fmt.Sprintf(`{"as":%q,"reason":"it is in the books"}`, as)); a.status != http.StatusOK {
			t.Fatalf("settling as %s: %d %s", as, a.status, a.body)
		}
	}
	lists := func(what, state string, want ...string) {
		t.Helper()
		d.eventually(t, soon, what, func() error {
			var page struct {
				Calls []struct {
					ID      string `json:"id"`
					Attempt int    `json:"attempt"`
				} `json:"calls"`
			}
			d.read(t, "/calls?server=books&state="+state, &page)
			var got []string
			for _, c := range page.Calls {
				got = append(got, fmt.Sprintf("%s after %d", c.ID, c.Attempt))
			}
			if strings.Join(got, ", ") != strings.Join(want, ", ") {
				return fmt.Errorf("the calls that are %s: %v, want %v", state, got, want)
			}
			return nil
		})
	}
	first, second, third := crash(), crash(), crash()
	lists("the calls are unknown", "unknown", third+" after 1", second+" after 1", first+" after 1")
	settle(first, "done")
	settle(second, "failed")
	lists("the settled calls left the list", "unknown", third+" after 1")
	lists("the first call succeeded", "succeeded", first+" after 1")
	lists("the second call failed", "failed", second+" after 1")
	d.waitServers(t, 1, "books")
	settle(third, "run-again")
	lists("the third call ran again, and its outcome is unknown again", "unknown", third+" after 2")
	settle(third, "done")
	lists("nothing is unknown", "unknown")
	lists("each call is listed once", "succeeded", third+" after 2", first+" after 1")
}
