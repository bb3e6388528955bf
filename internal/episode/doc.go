// Package episode runs episodes of environments: tasks that a model works on with tools, for
// programs that train it.
//
// It owns the environments file ([Load]), the tasks ([Task]), episodes with their steps and
// limits ([Manager], [Episode]), what an episode's end is worth (through package reward), and
// the transcripts of episodes.
//
// Calls of an episode go through internal/calls as any other call does: the policy counts, and
// the environment says how held calls are answered. An episode keeps its state at one worker,
// under a name that no other episode has. If that worker is lost, if the outcome of a call is
// unknown, or if there is no capacity or quota, the episode ends without a reward: it is
// masked, and never 0. A tool that answers with an error or not in time is an observation.
//
// It promises that a step is never sent twice, that an episode that has ended runs nothing,
// and that a reward depends on the task and the steps alone.
//
// It refuses to know a protocol of trainers; package internal/rollout speaks those.
package episode
