// Package sandbox runs MCP servers inside hardened containers, one container for one
// use. It is the only package that talks to a container engine.
//
// # What it promises
//
//   - [Resolve] turns what an operator wrote into a [Spec], and nothing else can
//     make one. Whatever would widen the sandbox is refused with a sentence that names
//     the key and the fix, unless the operator allows that very thing by name.
//     [Spec.InState] adds a directory that was made for one container, and nothing else.
//   - An image is looked up once, by [Engine.Pin], and then run by its id. It is
//     never pulled.
//   - [Engine.Start] gives the same pipes as a child process has, see
//     [Container]. What the container writes to stderr is always read.
//   - A container is used once: [Pool] hands each out to one caller and destroys
//     it afterwards. It is handed out only after the caller's handshake worked.
//   - A container does not outlive its time limit, nor its worker: stdin closes
//     with the connection, so that honest servers end by themselves, the reaper of
//     package launch removes the others ([Sweep]), and so does the [Janitor] of any
//     worker that shares the engine.
//   - A container has no network but loopback. Where its Spec lists places that it
//     may reach, a forwarder in a container of its own shares that loopback and carries
//     what comes to the proxy of package egress, here; it ends with its sandbox.
//   - No network, volume or container is left behind.
//
// # What it refuses
//
// It never runs anything outside a container: where there is no engine, no image,
// or an engine that cannot enforce a limit, it returns an error. It does not build
// or pull images, gives nobody a shell or a terminal, and starts no docker binary.
//
// It is no promise against a fault of the kernel. Where that matters the runtime
// runsc (gVisor) puts a second kernel between.
//
// It is one package because the description, the start, the pool and the end of a
// container have to agree on one [Spec]: nothing outside can make or change one.
package sandbox
