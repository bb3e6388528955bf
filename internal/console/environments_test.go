package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/console"
)

const notes = `{"name":"notes/2","isolation":"session","running":2,"limit":8,"ended":30,"outcomes":{"done":25,"masked":3,"closed":2},"masked":{"worker-lost":2,"capacity":1},"rewards":25,"mean_reward":0.25,"least_reward":-1,"most_reward":1}`

func TestEpisodesAndRewardsOfEnvironmentsAreShown(t *testing.T) {
	d := openDoor(t, map[string]string{
		"GET /version":      `{"version":"1"}`,
		"GET /environments": `{"since":"2026-11-26T02:00:00Z","environments":[` + notes + `,{"name":"idle","isolation":"shared","running":0,"limit":8}]}`,
		"GET /notes%2F2/episodes": `{"since":"2026-11-26T02:00:00Z","environment":` + notes + `,
			"curve":[{"from":"2026-11-26T02:00:00Z","to":"2026-11-26T02:00:00Z","episodes":10,"mean":-1},{"from":"2026-11-26T02:30:00Z","to":"2026-11-26T02:30:00Z","episodes":10,"mean":0},{"from":"2026-11-26T03:00:00Z","to":"2026-11-26T03:00:00Z","episodes":5,"mean":1}],
			"in_progress":[{"id":"episode_1","task":"t7","principal":"trainer","steps":4,"began":"2026-11-26T03:00:00Z"}],
			"recent":[{"id":"episode_2","task":"t8","principal":"trainer","steps":2,"began":"2026-11-26T02:59:00Z","ended":"2026-11-26T03:00:00Z","outcome":"masked","reason":"worker-lost"},{"id":"episode_3","task":"t9","principal":"trainer","steps":2,"began":"2026-11-26T02:59:00Z","ended":"2026-11-26T03:00:00Z","outcome":"closed"}]}`,
	})
	k := openDesk(t, d, func(o *console.Options) { o.Environments = d.url })
	k.key = "door-key"
	k.get("/console/environments").has(t, `href="/console/environment?name=notes%2F2"`, "0.250", ">25</td>", "session", `href="/console/environments" aria-current="page"`, "idle")
	if got := d.last("GET /environments").key; got != "door-key" {
		t.Errorf("asked with the key %q", got)
	}
	p := k.get("/console/environment?name=notes%2F2")
	p.has(t, "Worker lost", "2 episodes", "1 episode<", "episode_1", "t7", "episode_2", "Given up", "from -1.000 to 1.000", `points="0,96 500,50 1000,4"`, `y1="50"`)
	checkEscaped(t, "an environment", p.body)
	if p = k.get("/console/environment"); p.status != http.StatusSeeOther {
		t.Errorf("without a name: %d", p.status)
	}
	if p = k.get("/console/environment?name=none"); p.status != http.StatusNotFound {
		t.Errorf("one that is not there: %d", p.status)
	}
}

func TestFailingEnvironmentsShowWhatToDo(t *testing.T) {
	d := openDoor(t, map[string]string{"GET /version": `{"version":"1"}`})
	env := openDoor(t, map[string]string{"GET /environments": "!forbidden You may not."})
	for _, test := range []struct{ at, key, want string }{
		{env.url, "", "You may not."},
		{env.url, "other", "do not know your API key"},
		{d.url, "", "There is no such thing."},
		{"http://127.0.0.1:1", "", "Check that callyard env runs"},
	} {
		env.key = test.key
		k := openDesk(t, d, func(o *console.Options) { o.Environments = test.at })
		p := k.get("/console/environments")
		if p.status < http.StatusBadRequest || !strings.Contains(p.body, test.want) {
			t.Errorf("%+v: %d %s", test, p.status, p.body)
		}
	}
}

func TestThePageOfTheFleetHasItsVersionRightAfterOneOfEnvironments(t *testing.T) {
	d := openDoor(t, map[string]string{
		"GET /version":      `{"version":"1.2.3-test","go":"go1","started":"2026-01-01T00:00:00Z"}`,
		"GET /environments": `{"environments":[]}`,
		"GET /workers":      `{"workers":[]}`, "GET /front-doors": frontDoorsJSON(`{"id":"frontdoor_1","draining":false}`), "GET /configuration": `{"processes":[],"disagreements":[]}`,
	})
	k := openDesk(t, d, func(o *console.Options) { o.Environments = d.url })
	k.get("/console/environments")
	k.get("/console/fleet").has(t, "1.2.3-test")
}
