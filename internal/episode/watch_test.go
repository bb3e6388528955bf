package episode

import (
	"testing"

	"github.com/callyard/callyard/pkg/schema"
)

func TestEpisodesAreCountedWithTheirRewardsWhenTheyEnd(t *testing.T) {
	m, env := slotted(t, &slots{workers: []schema.WorkerID{"w1", "w2", "w3"}})
	defer m.Close()
	begin := func(id string) *Episode {
		t.Helper()
		ep, err := m.Begin(t.Context(), env, Begin{Task: env.tasks.byID["a"], ID: id, Principal: schema.Principal{Name: "trainer"}})
		if err != nil {
			t.Fatal(err)
		}
		return ep
	}
	one, two := begin("one"), begin("two")
	if _, err := one.Step(t.Context(), "finish", nil); err != nil {
		t.Fatal(err)
	}
	if d := m.WatchOne(env); d.Environment.Running != 1 || d.Environment.Ended != 1 || len(d.InProgress) != 1 || d.InProgress[0].ID != "two" || d.InProgress[0].Principal != "trainer" || len(d.Recent) != 1 {
		t.Errorf("in progress: %+v", d)
	}
	one.Close() // counts nothing
	two.Close()
	d := m.WatchOne(env)
	if e := d.Environment; e.Running != 0 || e.Ended != 2 || e.Outcomes["closed"] != 1 || e.Outcomes["done"] != 1 || e.Rewards != 1 || e.Mean == nil || *e.Mean != 1 || e.Isolation != "process" || e.Limit < 1 {
		t.Errorf("ended: %+v", e)
	}
	if len(d.InProgress) != 0 || len(d.Recent) != 2 || d.Recent[0].ID != "two" || d.Recent[0].Reward != nil || d.Recent[1].ID != "one" || d.Recent[1].Ended == nil {
		t.Errorf("ended: %+v", d.Recent)
	}
	if r := d.Recent[1].Reward; r == nil || *r != 1 || len(d.Curve) != 1 || d.Curve[0].Mean != 1 {
		t.Errorf("rewards: %+v", d)
	}
	if list := m.Watch(); len(list.Environments) != 1 || list.Environments[0].Ended != 2 || list.Since.IsZero() {
		t.Errorf("%+v", list)
	}
}
