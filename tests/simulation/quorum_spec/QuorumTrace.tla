----------------------------- MODULE QuorumTrace -----------------------------
(* Checks that what nodes of a simulation did is what the specification allows. An event has the state of one node    *)
(* after an input, and what it sent; actions of that node must lead there. TLC finds them. The module Events, made    *)
(* from the simulation, defines                                                                                       *)
(*   Trace   a sequence of events: [node, restarted, epoch, voted, role, leader, kept, added, flushed, hwm, sent],    *)
(*           where the log is the first `kept` batches of the node's last event, and then `added`;                    *)
(*           or [node |-> None, formatted] where another run begins                                                   *)
(*   Replicas, MostSteps                                                                                              *)

EXTENDS Quorum, Events

VARIABLES
    position,  \* the next event
    steps,     \* actions since the last event
    seen,      \* the logs of the last events
    started    \* TRUE once the restart of the next event has been explained

all == <<vars, position, steps, seen, started>>

\* TLC's register 1 has the number of the last event that was reached.
Reached(n) == IF n > TLCGet(1) THEN TLCSet(1, n) /\ PrintT(<<"reached", n>>) ELSE TRUE

TraceInit ==
    /\ Init
    /\ position = 1 /\ steps = 0 /\ started = FALSE
    /\ seen = [n \in Nodes |-> <<>>]
    /\ TLCSet(1, 0)

Blank(formatted_) ==
    /\ formatted' = [n \in Nodes |-> IF n \in formatted_ THEN formatted_ ELSE {}]
    /\ epoch' = [n \in Nodes |-> 0]
    /\ voted' = [n \in Nodes |-> None]
    /\ role' = [n \in Nodes |-> "Unattached"]
    /\ leader' = [n \in Nodes |-> None]
    /\ log' = [n \in Nodes |-> <<>>]
    /\ flushed' = [n \in Nodes |-> 0]
    /\ hwm' = [n \in Nodes |-> 0]
    /\ asked' = {} /\ granted' = {} /\ fetched' = {}
    /\ led' = <<>>
    /\ elections' = {}
    /\ restarts' = 0
    /\ seen' = [n \in Nodes |-> <<>>]

BeginRun == Blank(Trace[position].formatted) /\ Reached(position) /\ position' = position + 1 /\ steps' = 0 /\ started' = FALSE

Event == Trace[position]
N == Event.node
Target == Prefix(seen[N], Event.kept) \o Event.added
Sent == Event.sent

IsExplained ==
    /\ epoch[N] = Event.epoch /\ voted[N] = Event.voted /\ role[N] = Event.role
    /\ Event.leader = IF leader[N] = None THEN -1 ELSE IdOf[leader[N]]
    /\ flushed[N] = Event.flushed /\ hwm[N] = Event.hwm
    /\ Event.restarted => started
    /\ Sent.granted \subseteq granted /\ Sent.fetched \subseteq fetched /\ Sent.asked \subseteq asked
    /\ log[N] = Target

Explain ==
    /\ IsExplained
    /\ position' = position + 1 /\ steps' = 0 /\ started' = FALSE
    /\ seen' = [seen EXCEPT ![N] = log[N]]
    /\ Reached(position)
    /\ UNCHANGED vars

\* Batches that the node wrote itself.
Next1 == Target[Len(log[N]) + 1]
MayWrite == Len(log[N]) < Len(Target) /\ IsPrefix(log[N], Target) /\ Next1.epoch = epoch[N]

\* Actions of the node; only those that may lead to the event.
Act ==
    \/ /\ epoch[N] < Event.epoch
       /\ \/ \E e \in Heard : e <= Event.epoch /\ LearnEpoch(N, e)
          \/ role[N] = "Resigned" /\ LearnEpoch(N, epoch[N] + 1)
          \/ BecomeCandidate(N)
    \/ BecomeProspective(N) \/ LosePreVote(N)
    \/ \E e \in DOMAIN led : e <= Event.epoch /\ Follow(N, e)
    \/ Resign(N)
    \/ \E request \in asked :
          LET grant == [pre |-> request.pre, epoch |-> epoch[N], by |-> N, to |-> request.from]
          IN \/ grant \in Sent.granted \ granted /\ (GrantPreVote(N, request) \/ GrantVote(N, request))
             \/ Event.restarted /\ ~started /\ ~request.pre /\ GrantVote(N, request)
    \/ /\ MayWrite
       /\ \/ BecomeLeader(N, Next1.id, Next1.voters)
          \/ Next1.voters = {} /\ Propose(N, Next1.id)
          \/ ChangeVoters(N, Next1.id, Next1.voters)
          \/ Event.restarted /\ ~started /\ BeginInVain(N, Next1.id, Next1.voters)
    \/ flushed[N] < Event.flushed /\ Flush(N, Min(Event.flushed, Len(log[N])))
    \/ [epoch |-> epoch[N], by |-> N, end |-> End(log[N])] \in Sent.fetched \ fetched /\ Fetch(N)
    \/ hwm[N] < Event.hwm /\ (Commit(N, Event.hwm) \/ LearnCommit(N, Event.hwm) \/ Adopt(N, Event.hwm))
    \/ Copy(N, Len(Target))
    \/ Truncate(N, Event.kept)

Explore ==
    /\ steps < MostSteps
    /\ position > TLCGet(1)     \* the shortest explanation is enough
    /\ \/ Act /\ started' = started
       \/ /\ Event.restarted /\ ~started /\ started' = TRUE
          /\ \E as \in {"Resigned", "Candidate", "Follower", "Unattached"} : Restart(N, Event.flushed, Event.hwm, as)
       \/ /\ Event.restarted /\ ~started /\ started' = TRUE     \* it does not know the leader's address any more
          /\ leader[N] \notin {None, N}
          /\ Restart(N, Event.flushed, Event.hwm, "Unattached")
    /\ steps' = steps + 1
    /\ UNCHANGED <<position, seen>>

TraceNext ==
    \/ position <= Len(Trace) /\ IF Trace[position].node = None THEN BeginRun
                           ELSE IF IsExplained THEN Explain
                           ELSE Explore
    \/ position > Len(Trace) /\ PrintT("accepted") /\ UNCHANGED all

\* The invariants, once an event is explained.
Settled(invariant) == steps = 0 => invariant
ElectionSafetyHolds == Settled(ElectionSafety)
CommittedStaysTheSame == Settled(CommittedIsTheSame)
LeadersAreComplete == Settled(LeaderCompleteness)
HighWatermarksAreInLogs == Settled(HighWatermarkIsInTheLog)
AllRolesAreValid == Settled(RolesAreValid)

TraceSpec == TraceInit /\ [][TraceNext]_all

=============================================================================
