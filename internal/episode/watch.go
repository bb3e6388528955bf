package episode

import (
	"cmp"
	"slices"

	"github.com/callyard/callyard/internal/episode/tally"
)

// maxInProgress limits the episodes in a list of those in progress.
const maxInProgress = 100

// Watch returns the counts of every environment since the manager started.
func (m *Manager) Watch() tally.List {
	list := tally.List{Since: m.since.UTC(), Environments: []tally.Environment{}}
	for _, e := range m.Environments() {
		list.Environments = append(list.Environments, m.counted(e))
	}
	return list
}

// WatchOne returns the counts of one environment, with its episodes.
func (m *Manager) WatchOne(e *Environment) tally.Detail {
	d := tally.Detail{Since: m.since.UTC(), Environment: m.counted(e), InProgress: []tally.Episode{}}
	d.Curve, d.Recent = m.tally.Show(e.name)
	for _, ep := range m.all() {
		if ep.env == e {
			d.InProgress = append(d.InProgress, viewOf(ep))
		}
	}
	slices.SortFunc(d.InProgress, func(a, b tally.Episode) int { return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(a.ID, b.ID)) })
	d.InProgress = d.InProgress[:min(len(d.InProgress), maxInProgress)]
	return d
}

func (m *Manager) counted(e *Environment) tally.Environment {
	view := tally.Environment{Name: e.name, Isolation: e.Isolation, Limit: e.Limits.Episodes}
	m.tally.Fill(&view)
	m.mu.Lock()
	defer m.mu.Unlock()
	view.Running = m.running[e.name]
	return view
}

// viewOf returns the public view of an episode.
func viewOf(ep *Episode) tally.Episode {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	return tally.Episode{ID: ep.id, Task: ep.task.ID, Principal: ep.who.Name, Steps: ep.steps, Began: ep.began.UTC()}
}

// count adds an ended episode to the counts.
func (m *Manager) count(ep *Episode, outcome, reason string) {
	view, now := viewOf(ep), m.o.Now().UTC()
	view.Outcome, view.Reason, view.Ended = outcome, reason, &now
	if o := ep.Last(); o != nil {
		view.Reward = o.Reward
	}
	m.tally.End(ep.env.name, view)
}
