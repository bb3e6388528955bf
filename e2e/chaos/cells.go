package chaos

import "time"

// Columns of the matrix.
const (
	atDoor     = "front door"
	atNATS     = "NATS"
	atCluster  = "NATS cluster"
	atWorker   = "worker"
	atServer   = "MCP server"
	atSandbox  = "container"
	atApprover = "approver"
	atRedis    = "Redis"
	atSlack    = "Slack"
	atProvider = "identity provider"
	atAll      = "everything"
)

// Folders of tests that cover cells.
const (
	inE2E      = "./e2e"
	inApproval = "./internal/approval"
	inConfirm  = "./internal/confirm"
	inSession  = "./internal/session"
	inSandbox  = "./internal/launch/sandbox"
)

// longer than a lease, and than the time in which NATS and its clients detect a lost connection.
const (
	long   = 30 * time.Second
	longer = 20 * time.Second
)

// Cells returns the cells of the matrix.
func Cells() []Cell {
	// small returns a load for a few faults of one kind.
	small := func(mix ...Share) *Campaign {
		return &Campaign{Doors: 2, Workers: 3, Clients: 16, Calls: 500, BatchCalls: 200, BatchSize: 200, ToolMS: 60, Mix: mix}
	}
	lasting := func(down time.Duration, mix ...Share) *Campaign {
		c := small(mix...)
		c.Down = down
		return c
	}
	cluster := func(c *Campaign) *Campaign { c.Nodes = nodesOfCluster; return c }
	test := func(of string, names ...string) (tests []Test) {
		for _, name := range names {
			tests = append(tests, Test{of, name})
		}
		return tests
	}
	const killed = "TestConfirmationSurvivesKillBetweenAnyTwoSteps/"
	const (
		same  = "the same key gives the one result; what was under way is unknown at worst"
		whole = "nothing accepted is lost, nothing runs twice; "
	)
	cells := []Cell{
		{"kill -9", atDoor, whole + "clients go to another front door, which asks the workers", small(Share{KillDoor, 4}), nil},
		{"kill -9", atNATS, whole + "publishing again within seconds", small(Share{KillNATS, 4}), nil},
		{"kill -9", atCluster, whole + "the others continue", cluster(small(Share{KillNode, 4})), nil},
		{"kill -9", atWorker, same, small(Share{KillWorker, 8}), nil},
		{"kill -9", atServer, "its session is lost: unknown, or repeated where that is safe", small(Share{KillServer, 6}), nil},
		{"kill -9", atSandbox, "the container of a killed worker is gone within ten seconds", nil,
			test(inE2E, "TestContainersOfAKilledWorkerAreRemoved", "TestAnotherWorkerRemovesContainersOfKilledWorkerAndReaper")},
		{"kill -9", atApprover, "what waits still waits, and can be decided", nil, append(test(inE2E, killed+"approver", "TestSlackCardIsUpdatedByAnotherApproverAfterAKill"),
			test(inApproval, "TestRecordStaysCorrectAfterKillBetweenSteps")...)},
		{"kill -9", atRedis, "tokens are there again, or the caller is told that its token is gone", nil, test(inE2E, killed+"Redis", killed+"Redis_that_keeps_nothing")},

		{"stop for 30 s", atDoor, "others take its batches over; its late writes are refused", lasting(long, Share{StopDoor, 1}), nil},
		{"stop for 30 s", atNATS, whole + "clients wait and repeat", lasting(long, Share{StopNATS, 1}), nil},
		{"stop for 30 s", atCluster, "leaders move to the other nodes", cluster(lasting(long, Share{StopNode, 2})), nil},
		{"stop for 30 s", atWorker, "others take its calls; what wakes late changes nothing", lasting(long, Share{StopWorker, 2}), nil},
		{"stop for 30 s", atServer, "the call ends at its deadline as unknown, and the session is replaced", lasting(long, Share{StopServer, 2}), nil},
		{"stop for 30 s", atRedis, "503 for what needs a token, and nothing is spent", nil, test(inConfirm, "TestNoTokenIsSpentWhileRedisIsDown")},
		{"stop for 30 s", atSandbox, "a hung container is gone soon after its deadline", nil, test(inE2E, "TestAHungSandboxIsRemovedAfterItsDeadline")},

		{"partitioned from NATS", atDoor, "it says that it is not ready; others continue; unknown at worst", lasting(longer, Share{PartitionDoor, 2}), nil},
		{"partitioned from NATS", atWorker, "others take new calls; what it ran is asked for when it is back; unknown at worst", lasting(longer, Share{PartitionWorker, 2}), nil},
		{"partitioned from all", atCluster, "the other two nodes continue", cluster(lasting(longer, Share{PartitionNode, 2})), nil},
		{"partitioned from the others", atCluster, "the one node refuses writes, the two continue; nothing is accepted twice", cluster(lasting(longer, Share{SplitNodes, 3})), nil},
		{"60 ms late, 2 % lost", atAll, "slower, and nothing else", cluster(lasting(longer, Share{SlowLAN, 2})), nil},

		{"restart", atAll, "everything that was accepted ends", small(Share{RestartAll, 2}), nil},
		{"kill -9 of all", atAll, "everything that was accepted ends; pending approvals are still there", small(Share{KillAll, 3}), nil},
		{"kill -9 of all", atApprover, "pending approvals are still there", nil, test(inE2E, "TestAHeldCallSurvivesAKillOfEverything")},
		{"power cut", atNATS, "0 acknowledged calls lost", small(Share{CutPower, 3}), nil},

		{"disk full", atNATS, "new calls get 503; what was acknowledged is kept; it serves again when there is room and NATS was started again", lasting(8*time.Second, Share{FillDisk, 2}), nil},
		{"disk full", atSandbox, "a container fills its own memory disk only", nil, test(inSandbox, "TestResourceBombsDoNotAffectOtherSandboxes")},
		{"disk full", atRedis, "limits and results are as without Redis", nil, append(test("./internal/calls/quota", "TestFullRedisIsLoggedOnceAndSharesApply"),
			test("./internal/calls/cache", "TestFullRedisIsLoggedOnceAndCachesNothing")...)},
		{"stream full", atNATS, "it refuses and drops nothing", nil, append(test("./internal/store/journal", "TestFullStreamRefusesAppendsUntilThereIsSpace"),
			test("./internal/store/ledger", "TestAFullLedgerRefusesAndDropsNothing")...)},

		{"backlog", atDoor, "503 or 429 with Retry-After before anything is accepted", nil, append(test(inE2E, "TestOverloadIsRefusedBeforeAnythingStarts", "TestCallsBeyondTheSlotsAreQueuedAndServed"),
			test("./internal/frontdoor", "TestFullServerReturns503BeforeAcceptingACall")...)},
		{"hang", atServer, "a server that hangs is found and replaced", nil, test(inSession, "TestAServerThatHangsIsReplacedAfterAFailedHealthCheck", "TestIdleServerThatHangsIsReplaced")},
		{"crash in mid-call", atServer, "that call is unknown, or repeated where that is safe", nil,
			test(inE2E, "TestServerKilledDuringACallFailsThatCallOnly", "TestSafeCallSurvivesKillOfItsServer")},
		{"15 bad behaviours", atServer, "each call of theirs has an honest answer; no call of the good servers is hurt", &Campaign{
			Doors: 2, Workers: 3, Clients: 16, Calls: 1500, BatchCalls: 500, BatchSize: 250, ToolMS: 60, Bad: true}, nil},
		{"never answers its handshake", atServer, "503 with the reason, after the time for starting", nil, test(inSession, "TestASilentServerTimesOut", "TestImmediateExitIsReportedWithTheStderrTail")},
		{"never answers its handshake", atSandbox, "the container is given up", nil, test(inSandbox, "TestHandshakeThatHangsTimesOut")},

		{"clock ± 1 h", atDoor, "early expiry is allowed, a late run is not", lasting(longer, Share{JumpDoor, 3}), nil},
		{"clock ± 1 h", atWorker, "early expiry is allowed, a late run is not", lasting(longer, Share{JumpWorker, 3}), nil},
		{"clock ± 1 h", atNATS, "nothing expires that was just stored", lasting(longer, Share{JumpNATS, 3}), nil},
		{"clock ± 1 h", atApprover, "nothing runs that was to expire", nil, test(inApproval, "TestClockJumpRunsNoExpiredApproval", "TestExtensionSurvivesClockJumps")},

		{"flush, old dump, failover", atRedis, "no second run; at worst people are asked again", nil, append(test(inE2E, "TestRedisFaultsDuringConfirmationsRunNoCallTwice"),
			test(inConfirm, "TestNoCallRunsTwiceAfterRedisFlush", "TestNoCallRunsTwiceAfterRedisRestore", "TestNoCallRunsTwiceAfterReplicaPromotion")...)},
		{"down or slow", atSlack, "the page decides; Slack holds up itself alone", nil, test("./internal/approver/notify", "TestSlowChannelDelaysNoOthers")},
		{"silence", atApprover, "nobody answers: expired at the end, and not run", nil, test(inApproval, "TestUndecidedApprovalsExpire")},
		{"down", atProvider, "no new sign-ins, no way around, keys still work", nil, append(test("./internal/approver/oidc", "TestSignInRecoversSoonAfterProviderOutage"),
			test("./internal/approver/web", "TestProviderOutageIsReportedAndKeysStillWork")...)},
		{"engine restart", atSandbox, "the call is unknown; 503 until the engine is back; nothing runs outside", nil, test(inE2E, "TestDockerEngineStopEndsCallAsUnknownAndRefusesOthers")},
		{"unknown frame or record", atNATS, "refused, never misread", nil, append(test("./pkg/bus", "TestBrokenMessagesAreRefused", "TestUnknownFieldsAreSkipped"),
			test("./internal/store/journal", "TestDamagedRecordsAreRefused")...)},
		{"poison", atServer, "a call that always crashes its server ends with a reason, and the server continues", nil, test(inSession, "TestAToolThatAlwaysCrashesDoesNotOpenTheBreaker")},
	}
	return cells
}
