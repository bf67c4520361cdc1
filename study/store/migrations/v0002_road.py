"""Schema version 2: a participant's whole procedure, one live tab, withdrawal, pay, an audit trail.

``session`` and ``trial_plan`` are rebuilt because SQLite cannot change a CHECK. Responses are append-only except
for erasure after a withdrawal: it needs a row in ``withdrawal`` and leaves each response's hashes in
``erased_answer``, so that the chain can still be verified.
"""

from __future__ import annotations

from study.store.migrations.translation import guards, translate

_ERASABLE = ("response", "response_conflict", "event", "trial_plan", "comprehension", "questionnaire")
_LASTING = ("erased_answer", "withdrawal", "audit")
_UNCHANGING = ("comprehension", "questionnaire", *_LASTING)

_SESSION = "session_id, study, study_hash, participant_id, mode, token_hash"
_COUNTS = "position, practice, main, condition, side_flip, order_seed, n_resumes, started_at, last_seen"
_ENDS = "completed_at, completion_code"

_REBUILT = (
    """
CREATE TABLE new_session(
  session_id TEXT PRIMARY KEY, study TEXT NOT NULL, study_hash TEXT NOT NULL REFERENCES study_version,
  participant_id TEXT NOT NULL, mode TEXT NOT NULL CHECK(mode IN ('live', 'preview', 'sim')),
  token_hash TEXT NOT NULL UNIQUE,
  stage TEXT NOT NULL CHECK(stage IN
    ('consent', 'instructions', 'check', 'example', 'practice', 'main', 'questionnaire', 'debrief',
     'done', 'declined', 'screened', 'full', 'expired', 'withdrawn')),
  position INTEGER NOT NULL DEFAULT 0 CHECK(position BETWEEN 0 AND practice + main),
  practice INTEGER NOT NULL, main INTEGER NOT NULL,
  condition TEXT, side_flip INTEGER CHECK(side_flip IN (0, 1)), order_seed INTEGER,
  n_resumes INTEGER NOT NULL DEFAULT 0, started_at INTEGER NOT NULL, last_seen INTEGER NOT NULL,
  agreed_at INTEGER, completed_at INTEGER, completion_code TEXT UNIQUE,
  tab_id TEXT, tab_until INTEGER, over_quota INTEGER NOT NULL DEFAULT 0 CHECK(over_quota IN (0, 1)), env_json TEXT,
  UNIQUE(study, mode, participant_id)) STRICT""",
    f"""
INSERT INTO new_session({_SESSION}, stage, {_COUNTS}, {_ENDS}, agreed_at)
SELECT {_SESSION}, CASE stage WHEN 'instructions' THEN 'example' ELSE stage END, {_COUNTS}, {_ENDS},
  (SELECT at FROM consent c WHERE c.session_id = session.session_id AND agreed = 1) FROM session""",
    "DROP TABLE session",
    "ALTER TABLE new_session RENAME TO session",
    """
CREATE TABLE new_plan(
  session_id TEXT NOT NULL REFERENCES session, trial_index INTEGER NOT NULL,
  phase TEXT NOT NULL CHECK(phase IN ('practice', 'main', 'catch')), item_id TEXT NOT NULL,
  left_is TEXT NOT NULL CHECK(left_is IN ('a', 'b')), screen_json TEXT NOT NULL, shown_sha256 TEXT NOT NULL,
  PRIMARY KEY(session_id, trial_index)) STRICT, WITHOUT ROWID""",
    "INSERT INTO new_plan SELECT * FROM trial_plan",
    "DROP TABLE trial_plan",
    "ALTER TABLE new_plan RENAME TO trial_plan",
    """CREATE TRIGGER trial_plan_no_update BEFORE UPDATE ON trial_plan
BEGIN SELECT RAISE(ABORT, 'trial_plan is append-only'); END""",
)

_ADDED = (
    "ALTER TABLE response ADD COLUMN confidence REAL CHECK(confidence BETWEEN 0 AND 1)",
    "ALTER TABLE response ADD COLUMN dropped_frames INTEGER",
    "ALTER TABLE response ADD COLUMN clock_ms REAL",
    "ALTER TABLE consent ADD COLUMN version TEXT",
    "ALTER TABLE consent ADD COLUMN boxes_json TEXT",
    """
CREATE TABLE comprehension(
  session_id TEXT NOT NULL REFERENCES session, attempt INTEGER NOT NULL CHECK(attempt >= 1),
  answers_json TEXT NOT NULL, passed INTEGER NOT NULL CHECK(passed IN (0, 1)), received_at INTEGER NOT NULL,
  PRIMARY KEY(session_id, attempt)) STRICT, WITHOUT ROWID""",
    """
CREATE TABLE questionnaire(
  session_id TEXT NOT NULL REFERENCES session, item TEXT NOT NULL, answer_json TEXT NOT NULL,
  received_at INTEGER NOT NULL, PRIMARY KEY(session_id, item)) STRICT, WITHOUT ROWID""",
    """
CREATE TABLE payment(
  session_id TEXT PRIMARY KEY REFERENCES session, minor_units INTEGER NOT NULL CHECK(minor_units >= 0),
  currency TEXT NOT NULL, formula TEXT NOT NULL, batch INTEGER) STRICT""",
    """
CREATE TABLE withdrawal(
  session_id TEXT PRIMARY KEY REFERENCES session, requested_at INTEGER NOT NULL) STRICT""",
    """
CREATE TABLE erased_answer(
  seq INTEGER PRIMARY KEY, session_id TEXT NOT NULL REFERENCES withdrawal, prev_hash TEXT NOT NULL,
  row_hash TEXT NOT NULL UNIQUE) STRICT""",
    """
CREATE TABLE audit(
  seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, actor TEXT NOT NULL, act TEXT NOT NULL, detail_json TEXT NOT NULL,
  prev_hash TEXT NOT NULL, row_hash TEXT NOT NULL UNIQUE) STRICT""",
)


def _guard(table: str, verb: str, unless: str = "") -> str:
    return (
        f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table}{unless} "
        f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
    )


_WITHDRAWN = " WHEN NOT EXISTS (SELECT 1 FROM withdrawal w WHERE w.session_id = OLD.session_id)"

_GUARDS = (
    *(f"DROP TRIGGER {table}_no_delete" for table in ("response", "response_conflict", "event")),
    *(_guard(table, "DELETE", _WITHDRAWN) for table in _ERASABLE),
    *(_guard(table, "UPDATE") for table in _UNCHANGING),
    *(_guard(table, "DELETE") for table in _LASTING),
)

STATEMENTS = _REBUILT + _ADDED + _GUARDS

_STAGES = (
    "'consent', 'instructions', 'check', 'example', 'practice', 'main', 'questionnaire', 'debrief', 'done', "
    "'declined', 'screened', 'full', 'expired', 'withdrawn'"
)

_CHANGED = (
    "ALTER TABLE session DROP CONSTRAINT session_stage_check",
    f"ALTER TABLE session ADD CONSTRAINT session_stage_check CHECK(stage IN ({_STAGES}))",
    *translate(
        tuple(
            f"ALTER TABLE session ADD COLUMN {column}"
            for column in (
                "agreed_at INTEGER",
                "tab_id TEXT",
                "tab_until INTEGER",
                "over_quota INTEGER NOT NULL DEFAULT 0 CHECK(over_quota IN (0, 1))",
                "env_json TEXT",
            )
        )
    ),
    "ALTER TABLE trial_plan DROP CONSTRAINT trial_plan_phase_check",
    "ALTER TABLE trial_plan ADD CONSTRAINT trial_plan_phase_check CHECK(phase IN ('practice', 'main', 'catch'))",
)

_ERASABLE_FUNCTION = """
CREATE FUNCTION erasable() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM withdrawal w WHERE w.session_id = OLD.session_id) THEN RETURN OLD; END IF;
  RAISE EXCEPTION USING MESSAGE = TG_TABLE_NAME || ' is append-only';
END $$"""

_OLDER = ("response", "response_conflict", "event", "trial_plan")

POSTGRESQL = (
    *_CHANGED,
    *translate(_ADDED),
    _ERASABLE_FUNCTION,
    *(f"DROP TRIGGER {table}_no_{end} ON {table}" for table in _OLDER for end in ("delete", "truncate")),
    *(made for table in _ERASABLE for made in guards(table, "DELETE", "erasable")),
    *(
        made
        for table in ("comprehension", "questionnaire", *_LASTING)
        for made in guards(table, "UPDATE", "append_only")
    ),
    *(made for table in _LASTING for made in guards(table, "DELETE", "append_only")),
)
"""No PostgreSQL database of version 1 has data; it has the same steps so that the versions agree."""
