------------------------------- MODULE Quorum -------------------------------
(* The safety of a KRaft quorum: elections with pre-votes (KIP-595, KIP-996), replication, commits, truncation,       *)
(* snapshots, changes of the voters (KIP-853), crashes and losses of power.                                          *)
(*                                                                                                                   *)
(* Time is not modelled: whatever a timeout starts may happen at any time. Messages are sets that only grow, so that  *)
(* each may be lost, late or duplicated. A log is a sequence of batches. A snapshot replaces a prefix of the log by   *)
(* what it stands for, so a node's log is its logical log, from the first batch on.                                  *)

EXTENDS Naturals, Sequences, FiniteSets, TLC

CONSTANTS
    Nodes,         \* replicas, by node id and directory: a node with a new disk is another replica
    None,          \* nobody
    FirstVoters,   \* the voters of the model that TLC explores
    MaxEpoch,      \* bounds of that model
    MaxLength,
    MaxRestarts

VARIABLES
    formatted,     \* the voters in a node's own bootstrap checkpoint
    epoch, voted, role, leader,
    log,           \* sequences of [epoch, id, voters]; voters is {} except in a batch with a voter set
    flushed,       \* the number of batches that a loss of power leaves
    hwm,           \* the number of batches that a node knows to be committed
    asked,         \* requests for votes and pre-votes
    granted,       \* votes and pre-votes
    fetched,       \* the ends from which replicas have fetched
    led,           \* by epoch: the leader, its log, what it has committed, and what it knew to be committed before
    elections,     \* pairs of epoch and leader
    restarts       \* a count, which bounds the model

node == <<epoch, voted, role, leader, log, flushed, hwm>>
messages == <<asked, granted, fetched>>
vars == <<formatted, node, messages, led, elections, restarts>>

Prefix(s, length) == IF length < 1 THEN <<>> ELSE SubSeq(s, 1, length)
Last(s) == IF s = <<>> THEN 0 ELSE s[Len(s)].epoch
End(s) == <<Last(s), Len(s)>>
Max(a, b) == IF a > b THEN a ELSE b
Min(a, b) == IF a < b THEN a ELSE b
IsPrefix(a, b) == Len(a) <= Len(b) /\ a = Prefix(b, Len(a))
IsUpToDate(candidate, own) ==
    candidate[1] > own[1] \/ (candidate[1] = own[1] /\ candidate[2] >= own[2])

\* The length of the longest common prefix of two logs.
Common(a, b) ==
    LET most == Min(Len(a), Len(b))
        differing == {i \in 1..most : a[i] # b[i]}
    IN IF differing = {} THEN most ELSE (CHOOSE i \in differing : \A j \in differing : i <= j) - 1

\* The position of the last voter set in a log; 0 without one.
LastChange(s) ==
    LET changes == {i \in 1..Len(s) : s[i].voters # {}}
    IN IF changes = {} THEN 0 ELSE CHOOSE i \in changes : \A j \in changes : j <= i

VotersIn(n, s) == LET at == LastChange(s) IN IF at = 0 THEN formatted[n] ELSE s[at].voters
Voters(n) == VotersIn(n, log[n])
IsMajority(set, voters) == 2 * Cardinality(set \cap voters) > Cardinality(voters)

\* A voter, or a node whose removal may not be committed.
MayElect(n) ==
    LET at == LastChange(log[n])
    IN n \in Voters(n) \/ (at > hwm[n] /\ n \in VotersIn(n, Prefix(log[n], at - 1)))

Request(pre, e, n, s) == [pre |-> pre, epoch |-> e, from |-> n, end |-> End(s)]
Granting(n, kinds, e) == {g.by : g \in {g \in granted : g.to = n /\ g.epoch = e /\ g.pre \in kinds}}
Batch(e, id, voters) == [epoch |-> e, id |-> id, voters |-> voters]

\* The epochs that a node may hear of: of others, and of messages that were sent long ago.
Heard == {epoch[n] : n \in Nodes} \cup {m.epoch : m \in asked \cup granted \cup fetched} \cup DOMAIN led

\* ---- Elections

LearnEpoch(n, e) ==
    /\ e > epoch[n]
    /\ epoch' = [epoch EXCEPT ![n] = e]
    /\ voted' = [voted EXCEPT ![n] = None]
    /\ role' = [role EXCEPT ![n] = "Unattached"]
    /\ leader' = [leader EXCEPT ![n] = None]
    /\ UNCHANGED <<formatted, log, flushed, hwm, messages, led, elections, restarts>>

BecomeProspective(n) ==
    /\ role[n] \in {"Unattached", "Follower", "Candidate"} \/ (role[n] = "Resigned" /\ Voters(n) = {n})
    /\ MayElect(n)
    /\ role' = [role EXCEPT ![n] = "Prospective"]
    /\ asked' = asked \cup {Request(TRUE, epoch[n], n, log[n])}
    /\ UNCHANGED <<formatted, epoch, voted, leader, log, flushed, hwm, granted, fetched, led, elections, restarts>>

LosePreVote(n) ==
    /\ role[n] = "Prospective"
    /\ role' = [role EXCEPT ![n] = IF leader[n] = None \/ leader[n] = n THEN "Unattached" ELSE "Follower"]
    /\ leader' = [leader EXCEPT ![n] = IF @ = n THEN None ELSE @]
    /\ UNCHANGED <<formatted, epoch, voted, log, flushed, hwm, messages, led, elections, restarts>>

GrantPreVote(n, request) ==
    /\ request.pre /\ request.epoch = epoch[n] /\ request.from # n
    /\ role[n] # "Leader"
    /\ IsUpToDate(request.end, End(log[n]))
    /\ granted' = granted \cup {[pre |-> TRUE, epoch |-> epoch[n], by |-> n, to |-> request.from]}
    /\ UNCHANGED <<formatted, node, asked, fetched, led, elections, restarts>>

BecomeCandidate(n) ==
    /\ role[n] = "Prospective"
    /\ MayElect(n)
    /\ IsMajority(Granting(n, {TRUE, FALSE}, epoch[n]) \cup {n}, Voters(n))
    /\ epoch' = [epoch EXCEPT ![n] = @ + 1]
    /\ voted' = [voted EXCEPT ![n] = n]
    /\ role' = [role EXCEPT ![n] = "Candidate"]
    /\ leader' = [leader EXCEPT ![n] = None]
    /\ asked' = asked \cup {Request(FALSE, epoch[n] + 1, n, log[n])}
    /\ UNCHANGED <<formatted, log, flushed, hwm, granted, fetched, led, elections, restarts>>

GrantVote(n, request) ==
    /\ ~request.pre /\ request.epoch = epoch[n] /\ request.from # n
    /\ request.end[1] < request.epoch
    /\ role[n] \in {"Unattached", "Prospective"}
    /\ \/ voted[n] = request.from
       \/ voted[n] = None /\ leader[n] = None /\ IsUpToDate(request.end, End(log[n]))
    /\ voted' = [voted EXCEPT ![n] = request.from]
    /\ granted' = granted \cup {[pre |-> FALSE, epoch |-> epoch[n], by |-> n, to |-> request.from]}
    /\ UNCHANGED <<formatted, epoch, role, leader, log, flushed, hwm, asked, fetched, led, elections, restarts>>

HasWon(n) == role[n] = "Candidate" /\ IsMajority(Granting(n, {FALSE}, epoch[n]) \cup {n}, Voters(n))

\* The first batch of an epoch names its leader. The first leader adds the voters of its bootstrap checkpoint, and a
\* leader with a new address its voters again.
BecomeLeader(n, id, voters) ==
    /\ HasWon(n)
    /\ voters \in {{}, Voters(n)}
    /\ role' = [role EXCEPT ![n] = "Leader"]
    /\ leader' = [leader EXCEPT ![n] = n]
    /\ log' = [log EXCEPT ![n] = Append(@, Batch(epoch[n], id, voters))]
    /\ led' = (epoch[n] :> [leader |-> n, log |-> log'[n], hwm |-> 0, known |-> hwm[n]]) @@ led
    /\ elections' = elections \cup {<<epoch[n], n>>}
    /\ UNCHANGED <<formatted, epoch, voted, flushed, hwm, messages, restarts>>

\* The process ends after it has written that batch, and before anyone hears of it.
BeginInVain(n, id, voters) ==
    /\ HasWon(n)
    /\ voters \in {{}, Voters(n)}
    /\ log' = [log EXCEPT ![n] = Append(@, Batch(epoch[n], id, voters))]
    /\ UNCHANGED <<formatted, epoch, voted, role, leader, flushed, hwm, messages, led, elections, restarts>>

Follow(n, e) ==
    /\ e \in DOMAIN led /\ led[e].leader # n
    /\ \/ e > epoch[n]
       \/ e = epoch[n] /\ leader[n] = None /\ role[n] \in {"Unattached", "Prospective", "Candidate"}
       \/ e = epoch[n] /\ leader[n] # None /\ role[n] = "Unattached"    \* its address was unknown
    /\ epoch' = [epoch EXCEPT ![n] = e]
    /\ voted' = [voted EXCEPT ![n] = IF e > epoch[n] THEN None ELSE @]
    /\ role' = [role EXCEPT ![n] = "Follower"]
    /\ leader' = [leader EXCEPT ![n] = led[e].leader]
    /\ UNCHANGED <<formatted, log, flushed, hwm, messages, led, elections, restarts>>

Resign(n) ==
    /\ role[n] = "Leader"
    /\ role' = [role EXCEPT ![n] = "Resigned"]
    /\ UNCHANGED <<formatted, epoch, voted, leader, log, flushed, hwm, messages, led, elections, restarts>>

\* ---- The leader's log

Write(n, batch) ==
    /\ role[n] = "Leader"
    /\ log' = [log EXCEPT ![n] = Append(@, batch)]
    /\ led' = [led EXCEPT ![epoch[n]].log = log'[n]]
    /\ UNCHANGED <<formatted, epoch, voted, role, leader, flushed, hwm, messages, elections, restarts>>

Propose(n, id) == Write(n, Batch(epoch[n], id, {}))

\* One voter at a time, once the set of before and a batch of this epoch are committed.
ChangeVoters(n, id, voters) ==
    /\ voters # {}
    /\ Cardinality((voters \ Voters(n)) \cup (Voters(n) \ voters)) <= 1
    /\ LastChange(log[n]) <= hwm[n]
    /\ hwm[n] > 0 /\ log[n][hwm[n]].epoch = epoch[n]
    /\ Write(n, Batch(epoch[n], id, voters))

Flush(n, to) ==
    /\ to \in flushed[n] + 1 .. Len(log[n])
    /\ flushed' = [flushed EXCEPT ![n] = to]
    /\ UNCHANGED <<formatted, epoch, voted, role, leader, log, hwm, messages, led, elections, restarts>>

\* A replica has flushed everything before the end from which it fetches.
Fetch(n) ==
    /\ flushed[n] = Len(log[n])
    /\ fetched' = fetched \cup {[epoch |-> epoch[n], by |-> n, end |-> End(log[n])]}
    /\ UNCHANGED <<formatted, node, asked, granted, led, elections, restarts>>

\* Replicas that have everything before an offset, as the leader knows by their fetches.
Having(n, offset) ==
    {f.by : f \in {f \in fetched : /\ f.epoch = epoch[n] /\ f.by # n
                                   /\ f.end[2] >= offset /\ f.end[2] <= Len(log[n])
                                   /\ End(Prefix(log[n], f.end[2])) = f.end}}
    \cup (IF flushed[n] >= offset THEN {n} ELSE {})

Commit(n, offset) ==
    /\ role[n] = "Leader"
    /\ offset \in hwm[n] + 1 .. Len(log[n])
    /\ log[n][offset].epoch = epoch[n]
    /\ IsMajority(Having(n, offset), Voters(n))
    /\ hwm' = [hwm EXCEPT ![n] = offset]
    /\ led' = [led EXCEPT ![epoch[n]].hwm = offset]
    /\ UNCHANGED <<formatted, epoch, voted, role, leader, log, flushed, messages, elections, restarts>>

\* ---- Followers

Leading(n) == led[epoch[n]]
IsFollowing(n) == role[n] = "Follower" /\ epoch[n] \in DOMAIN led /\ leader[n] = Leading(n).leader
Matches(n) == Len(log[n]) <= Len(Leading(n).log) /\ End(Prefix(Leading(n).log, Len(log[n]))) = End(log[n])

Copy(n, to) ==
    /\ IsFollowing(n) /\ Matches(n)
    /\ to \in Len(log[n]) + 1 .. Len(Leading(n).log)
    /\ log' = [log EXCEPT ![n] = @ \o SubSeq(Leading(n).log, Len(@) + 1, to)]
    /\ UNCHANGED <<formatted, epoch, voted, role, leader, flushed, hwm, messages, led, elections, restarts>>

LearnCommit(n, offset) ==
    /\ IsFollowing(n) /\ Matches(n)
    /\ offset \in hwm[n] + 1 .. Min(Len(log[n]), Leading(n).hwm)
    /\ hwm' = [hwm EXCEPT ![n] = offset]
    /\ UNCHANGED <<formatted, epoch, voted, role, leader, log, flushed, messages, led, elections, restarts>>

Truncate(n, to) ==
    /\ IsFollowing(n) /\ ~Matches(n)
    /\ to >= hwm[n] /\ to >= Common(log[n], Leading(n).log) /\ to < Len(log[n])
    /\ log' = [log EXCEPT ![n] = Prefix(@, to)]
    /\ flushed' = [flushed EXCEPT ![n] = Min(@, to)]
    /\ UNCHANGED <<formatted, epoch, voted, role, leader, hwm, messages, led, elections, restarts>>

\* The leader's log no longer begins where this node's ends: a snapshot of what is committed replaces the whole log.
Adopt(n, to) ==
    /\ IsFollowing(n)
    /\ to \in hwm[n] + 1 .. Max(Leading(n).hwm, Leading(n).known)
    /\ ~IsPrefix(Prefix(Leading(n).log, to), log[n])
    /\ log' = [log EXCEPT ![n] = Prefix(Leading(n).log, to)]
    /\ flushed' = [flushed EXCEPT ![n] = to]
    /\ hwm' = [hwm EXCEPT ![n] = to]
    /\ UNCHANGED <<formatted, epoch, voted, role, leader, messages, led, elections, restarts>>

\* ---- Crashes

\* A process starts again with its flushed batches and any of the others.
Restart(n, kept, committed, as) ==
    /\ kept \in flushed[n] .. Len(log[n])
    /\ committed <= Min(hwm[n], kept)
    /\ as = CASE leader[n] = n -> "Resigned"
              [] leader[n] = None /\ voted[n] = n /\ n \in VotersIn(n, Prefix(log[n], kept)) -> "Candidate"
              [] OTHER -> as
    /\ as = "Resigned" => leader[n] = n
    /\ as = "Candidate" => voted[n] = n /\ leader[n] = None
    /\ as = "Follower" => leader[n] \notin {None, n}
    /\ as \in {"Resigned", "Candidate", "Follower", "Unattached"}
    /\ role' = [role EXCEPT ![n] = as]
    /\ log' = [log EXCEPT ![n] = Prefix(@, kept)]
    /\ flushed' = [flushed EXCEPT ![n] = kept]
    /\ hwm' = [hwm EXCEPT ![n] = committed]
    /\ asked' = IF as = "Candidate" THEN asked \cup {Request(FALSE, epoch[n], n, log'[n])} ELSE asked
    /\ restarts' = restarts + 1
    /\ UNCHANGED <<formatted, epoch, voted, leader, granted, fetched, led, elections>>

\* ---- The model

Init ==
    /\ formatted = [n \in Nodes |-> IF n \in FirstVoters THEN FirstVoters ELSE {}]
    /\ epoch = [n \in Nodes |-> 0]
    /\ voted = [n \in Nodes |-> None]
    /\ role = [n \in Nodes |-> "Unattached"]
    /\ leader = [n \in Nodes |-> None]
    /\ log = [n \in Nodes |-> <<>>]
    /\ flushed = [n \in Nodes |-> 0]
    /\ hwm = [n \in Nodes |-> 0]
    /\ asked = {} /\ granted = {} /\ fetched = {}
    /\ led = <<>>
    /\ elections = {}
    /\ restarts = 0

Next ==
    \E n \in Nodes :
        \/ \E e \in Heard : LearnEpoch(n, e)
        \/ role[n] = "Resigned" /\ LearnEpoch(n, epoch[n] + 1)
        \/ BecomeProspective(n) \/ LosePreVote(n) \/ BecomeCandidate(n) \/ Resign(n)
        \/ \E request \in asked : GrantPreVote(n, request) \/ GrantVote(n, request)
        \/ BecomeLeader(n, n, {}) \/ BeginInVain(n, n, {})
        \/ \E e \in DOMAIN led : Follow(n, e)
        \/ Propose(n, n)
        \/ \E voters \in SUBSET Nodes : ChangeVoters(n, n, voters)
        \/ Flush(n, Len(log[n]))
        \/ Fetch(n)
        \/ \E offset \in 1..MaxLength : Commit(n, offset) \/ LearnCommit(n, offset)
        \/ \E to \in 0..MaxLength : Copy(n, to) \/ Truncate(n, to) \/ Adopt(n, to)
        \/ \E kept \in 0..MaxLength, as \in {"Resigned", "Candidate", "Follower", "Unattached"} :
              restarts < MaxRestarts /\ Restart(n, kept, 0, as)

Spec == Init /\ [][Next]_vars

Bounds == \A n \in Nodes : epoch[n] <= MaxEpoch /\ Len(log[n]) <= MaxLength

\* ---- What must hold

ElectionSafety == \A a, b \in elections : a[1] = b[1] => a[2] = b[2]

LogMatching ==
    \A a, b \in Nodes : \A i \in 1..Min(Len(log[a]), Len(log[b])) :
        log[a][i].epoch = log[b][i].epoch /\ (i = Len(log[a]) \/ i = Len(log[b]) \/ log[a][i + 1] # log[b][i + 1])
            => Prefix(log[a], i) = Prefix(log[b], i)

CommittedIsTheSame ==
    \A a, b \in Nodes : LET most == Min(hwm[a], hwm[b]) IN Prefix(log[a], most) = Prefix(log[b], most)

LeaderCompleteness ==
    \A e \in DOMAIN led : \A f \in DOMAIN led :
        e > f => IsPrefix(Prefix(led[f].log, led[f].hwm), led[e].log)

\* What is committed was flushed by a node that can vote.
Durability ==
    \A e \in DOMAIN led : led[e].hwm > 0 =>
        \E n \in Nodes : flushed[n] >= led[e].hwm /\ IsPrefix(Prefix(led[e].log, led[e].hwm), log[n])

HighWatermarkIsInTheLog == \A n \in Nodes : hwm[n] <= Len(log[n]) /\ flushed[n] <= Len(log[n])

RolesAreValid ==
    \A n \in Nodes :
        /\ role[n] = "Follower" => leader[n] \notin {None, n}
        /\ role[n] \in {"Leader", "Resigned"} => leader[n] = n
        /\ role[n] = "Candidate" => leader[n] = None /\ voted[n] = n

=============================================================================
