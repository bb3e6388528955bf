// Package launch owns how a server is reached: it starts the process of a stdio
// server ([Launcher.Start]) and makes the HTTP client for a remote one
// ([HTTPClient]). It knows nothing of MCP; what travels through the pipes and
// requests belongs to package session.
//
// # What it promises
//
//   - A child sees the environment variables that [Spec.Env] names, a short list
//     of harmless ones, and one mark of ours. Never the worker's own.
//   - No shell is involved, whatever the command and its arguments look like.
//   - A child's descendants do not outlive it, and no child outlives its worker:
//     also where they moved to a session of their own, and also when the worker
//     is killed with SIGKILL. [Launcher] says how.
//   - What a child writes to stderr is always read, so that it never blocks, and
//     the end of it is kept for people to see.
//   - Headers of a remote server, which are mostly credentials, go to that server
//     alone.
//
// # What it refuses
//
// It is no sandbox. A program that means to stay can clear its environment and
// leave its family tree and its process group; untrusted code belongs in a
// container. Operators own the server file, so variables such as LD_PRELOAD or
// NODE_OPTIONS in [Spec.Env] are passed on as they are.
//
// # What a program that uses it must do
//
// The reaper is the same program, started again. Every main, and the TestMain of
// every package that makes a [Launcher], begins with
//
//	if launch.IsReaper() {
//		os.Exit(launch.RunReaper())
//	}
package launch
