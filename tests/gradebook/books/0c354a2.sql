BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0001');
CREATE TABLE edits (
	id INTEGER NOT NULL, 
	assignment_id TEXT NOT NULL, 
	student_id TEXT, 
	kind TEXT NOT NULL, 
	target TEXT NOT NULL, 
	value FLOAT, 
	comment TEXT NOT NULL, 
	remarks TEXT NOT NULL, 
	run INTEGER, 
	who TEXT NOT NULL, 
	at TEXT NOT NULL, 
	why TEXT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "edits" VALUES(1,'small','400101210','run','kept',1.0,'','[]',2,'ta1','2026-02-04T05:00:00+00:00','The same files gave less when they were examined again: 25 of 30 decided, 10 awaiting -> 24 of 30 decided, 10 awaiting. Run 1 counts.');
INSERT INTO "edits" VALUES(2,'small',NULL,'waive','scale',NULL,'','[]',NULL,'ta1','2026-02-04T07:00:00+00:00','Why waive.');
INSERT INTO "edits" VALUES(3,'small',NULL,'waive','shape',NULL,'','[]',NULL,'ta1','2026-02-04T08:00:00+00:00','Why waive.');
INSERT INTO "edits" VALUES(4,'small',NULL,'unwaive','shape',NULL,'','[]',NULL,'ta1','2026-02-04T09:00:00+00:00','Why unwaive.');
INSERT INTO "edits" VALUES(5,'small','400101201','mark','q6',3.0,'Good.','[["cite", "Cite it."]]',1,'ta1','2026-02-04T10:00:00+00:00','Why mark.');
INSERT INTO "edits" VALUES(6,'small','400101201','mark','q6',3.5,'Better.','[]',1,'ta1','2026-02-04T11:00:00+00:00','Why mark.');
INSERT INTO "edits" VALUES(7,'small','400101201','mark','q10.patches',2.0,'','[]',1,'ta1','2026-02-04T12:00:00+00:00','Why mark.');
INSERT INTO "edits" VALUES(8,'small','400101201','mark','q10.token',1.25,'','[]',1,'ta1','2026-02-04T13:00:00+00:00','Why mark.');
INSERT INTO "edits" VALUES(9,'small','400101202','mark','training',11.0,'','[]',1,'ta1','2026-02-04T14:00:00+00:00','Why mark.');
INSERT INTO "edits" VALUES(10,'small','400101202','mark','training',NULL,'','[]',1,'ta1','2026-02-04T15:00:00+00:00','Why mark.');
INSERT INTO "edits" VALUES(11,'small','400101202','mark','q10.token',2.5,'','[]',1,'ta1','2026-02-04T16:00:00+00:00','Why mark.');
INSERT INTO "edits" VALUES(12,'small','400101202','claim','',0.72,'','[]',1,'ta1','2026-02-04T17:00:00+00:00','Why claim.');
INSERT INTO "edits" VALUES(13,'small','400101201','claim','',0.99,'','[]',1,'ta1','2026-02-04T18:00:00+00:00','Why claim.');
INSERT INTO "edits" VALUES(14,'small','400101201','claim','',NULL,'','[]',1,'ta1','2026-02-04T19:00:00+00:00','Why claim.');
INSERT INTO "edits" VALUES(15,'small','400101203','received','digest-400101203',1769997600.0,'','[]',1,'ta1','2026-02-04T20:00:00+00:00','Why received.');
INSERT INTO "edits" VALUES(16,'small','400101204','no_grade','',NULL,'','[]',1,'ta1','2026-02-04T21:00:00+00:00','Why no_grade.');
INSERT INTO "edits" VALUES(17,'small','400101205','no_grade','',NULL,'','[]',1,'ta1','2026-02-04T22:00:00+00:00','Why no_grade.');
INSERT INTO "edits" VALUES(18,'small','400101205','waive_missing','',NULL,'','[]',1,'ta1','2026-02-04T23:00:00+00:00','Why waive_missing.');
INSERT INTO "edits" VALUES(19,'small','400101210','run','',1.0,'','[]',2,'ta1','2026-02-05T00:00:00+00:00','Why run.');
INSERT INTO "edits" VALUES(20,'small','400101208','in_time','digest-400101208',NULL,'','[]',1,'ta1','2026-02-05T01:00:00+00:00','Why in_time.');
INSERT INTO "edits" VALUES(21,'small','400101209','extension','',1770062400.0,'','[]',1,'ta1','2026-02-05T02:00:00+00:00','Why extension.');
INSERT INTO "edits" VALUES(22,'small','400101201','received','digest-400101201',1770667200.0,'','[]',1,'ta1','2026-02-05T03:00:00+00:00','Why received.');
INSERT INTO "edits" VALUES(23,'small','400101201','received','digest-400101201',NULL,'','[]',1,'ta1','2026-02-05T04:00:00+00:00','Why received.');
INSERT INTO "edits" VALUES(24,'small','400101206','run','kept',1.0,'','[]',2,'ta1','2026-02-05T15:00:00+00:00','The same files gave less when they were examined again: 27 of 30 decided, 10 awaiting -> 24 of 30 decided, 10 awaiting. Run 1 counts.');
INSERT INTO "edits" VALUES(25,'small','400101207','run','fell',NULL,'','[]',2,'ta1','2026-02-05T17:00:00+00:00','A later attempt gives less: 27 of 30 decided, 10 awaiting -> 24 of 30 decided, 10 awaiting.');
CREATE TABLE images (
	digest TEXT NOT NULL, 
	content BLOB NOT NULL, 
	PRIMARY KEY (digest)
);
CREATE TABLE run_images (
	run_id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	digest TEXT NOT NULL, 
	PRIMARY KEY (run_id, name), 
	FOREIGN KEY(run_id) REFERENCES runs (id), 
	FOREIGN KEY(digest) REFERENCES images (digest)
);
CREATE TABLE runs (
	id INTEGER NOT NULL, 
	assignment_id TEXT NOT NULL, 
	student_id TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	who TEXT NOT NULL, 
	at TEXT NOT NULL, 
	status TEXT, 
	submission_digest TEXT NOT NULL, 
	assignment_digest TEXT NOT NULL, 
	engine TEXT NOT NULL, 
	evidence TEXT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (assignment_id, student_id, number)
);
INSERT INTO "runs" VALUES(1,'small','400101201',1,'ta1','2026-02-02T20:00:00+00:00',NULL,'digest-400101201','','','{
 "format": 1,
 "evidence": {
  "student_id": "400101201",
  "assignment_id": "small",
  "submission_digest": "digest-400101201",
  "graded_at": "2026-02-02T20:00:00Z",
  "status": null,
  "reason": "",
  "received_at": "2026-01-31T17:00:00Z",
  "delivery": {
   "hinted_at": null,
   "hint": "",
   "marked_late": false,
   "extension": null
  },
  "partial": false,
  "code_file": "",
  "missing": [],
  "refused_files": [],
  "notes": [],
  "findings": [
   {
    "check": "oracle",
    "component": "Attention",
    "title": "It is attention.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "shape",
    "component": "Attention",
    "title": "The shape stays.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "scale",
    "component": "Attention",
    "title": "Scores are scaled.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "logits",
    "component": "ViT",
    "title": "One number per class.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "learns",
    "component": "train_epoch",
    "title": "It trains.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   }
  ],
  "near_names": [],
  "omissions": [],
  "forbidden": [],
  "tuned": [],
  "source": {
   "homework.py": "x = 1\n"
  },
  "claim": null,
  "shown_epochs": null,
  "parameters": null,
  "layers": [],
  "training": {
   "outcome": "completed",
   "reason": "",
   "where": "",
   "data": "",
   "device": "cpu",
   "classes": [],
   "epochs": [],
   "planned_epochs": 2,
   "accuracy": 0.7,
   "counted": "",
   "rebuilt": false,
   "interval": [
    0.66,
    0.74
   ],
   "runs": [],
   "confusion": [],
   "predictions": [],
   "attention": [],
   "seconds": 0.0,
   "projected_seconds": null
  },
  "checkpoint": {
   "status": "not_tried",
   "reason": "",
   "accuracy": null
  },
  "figures": [],
  "not_run": [],
  "attestation": {
   "level": "unofficial",
   "layers": null,
   "missing": []
  },
  "engine": "",
  "assignment_digest": "",
  "data_digest": "",
  "seconds": null
 }
}');
INSERT INTO "runs" VALUES(2,'small','400101202',1,'ta1','2026-02-02T21:00:00+00:00',NULL,'digest-400101202','','','{
 "format": 1,
 "evidence": {
  "student_id": "400101202",
  "assignment_id": "small",
  "submission_digest": "digest-400101202",
  "graded_at": "2026-02-02T21:00:00Z",
  "status": null,
  "reason": "",
  "received_at": "2026-01-31T17:00:00Z",
  "delivery": {
   "hinted_at": null,
   "hint": "",
   "marked_late": false,
   "extension": null
  },
  "partial": false,
  "code_file": "",
  "missing": [],
  "refused_files": [
   {
    "name": "notes.docx",
    "reason": "It is not among the files that the assignment asks for."
   }
  ],
  "notes": [
   "Magics were not executed.",
   "homework.py:3: the program''s constants hold about 9.1 kB of data; a person should look why."
  ],
  "findings": [
   {
    "check": "oracle",
    "component": "Attention",
    "title": "oracle",
    "status": "failed",
    "blame": "student",
    "diagnosis": "not_implemented",
    "message": "`Attention` is not implemented yet.",
    "hint": "",
    "where": "homework.py:1",
    "seconds": 0.0
   },
   {
    "check": "shape",
    "component": "Attention",
    "title": "shape",
    "status": "failed",
    "blame": "student",
    "diagnosis": "missing_scale",
    "message": "The scores are not scaled.",
    "hint": "",
    "where": "homework.py:1",
    "seconds": 0.0
   },
   {
    "check": "scale",
    "component": "Attention",
    "title": "Scores are scaled.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "logits",
    "component": "ViT",
    "title": "logits",
    "status": "passed",
    "blame": null,
    "diagnosis": "fixed_positions",
    "message": "The positions are fixed; learn them.",
    "hint": "",
    "where": "homework.py:1",
    "seconds": 0.0
   },
   {
    "check": "learns",
    "component": "train_epoch",
    "title": "learns",
    "status": "errored",
    "blame": "instructor",
    "diagnosis": "undecided",
    "message": "A person must look: it is odd.",
    "hint": "",
    "where": "homework.py:1",
    "seconds": 0.0
   }
  ],
  "near_names": [],
  "omissions": [
   {
    "place": {
     "file": "cell 3",
     "line": 1
    },
    "first_line": "x = (1",
    "reason": "the cell is not correct Python (x)"
   }
  ],
  "forbidden": [],
  "tuned": [],
  "source": {
   "homework.py": "x = 1\n"
  },
  "claim": {
   "accuracy": 0.85,
   "source": "cell 12",
   "text": "Test accuracy: 85%"
  },
  "shown_epochs": null,
  "parameters": null,
  "layers": [],
  "training": {
   "outcome": "completed",
   "reason": "",
   "where": "",
   "data": "",
   "device": "cpu",
   "classes": [],
   "epochs": [],
   "planned_epochs": 2,
   "accuracy": 0.7,
   "counted": "",
   "rebuilt": false,
   "interval": [
    0.66,
    0.74
   ],
   "runs": [],
   "confusion": [],
   "predictions": [],
   "attention": [],
   "seconds": 0.0,
   "projected_seconds": null
  },
  "checkpoint": {
   "status": "not_tried",
   "reason": "",
   "accuracy": null
  },
  "figures": [],
  "not_run": [],
  "attestation": {
   "level": "unofficial",
   "layers": null,
   "missing": []
  },
  "engine": "",
  "assignment_digest": "",
  "data_digest": "",
  "seconds": null
 }
}');
INSERT INTO "runs" VALUES(3,'small','400101203',1,'ta1','2026-02-02T22:00:00+00:00',NULL,'digest-400101203','','','{
 "format": 1,
 "evidence": {
  "student_id": "400101203",
  "assignment_id": "small",
  "submission_digest": "digest-400101203",
  "graded_at": "2026-02-02T22:00:00Z",
  "status": null,
  "reason": "",
  "received_at": "2026-02-02T20:00:00Z",
  "delivery": {
   "hinted_at": null,
   "hint": "",
   "marked_late": false,
   "extension": null
  },
  "partial": false,
  "code_file": "",
  "missing": [],
  "refused_files": [],
  "notes": [],
  "findings": [
   {
    "check": "oracle",
    "component": "Attention",
    "title": "It is attention.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "shape",
    "component": "Attention",
    "title": "The shape stays.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "scale",
    "component": "Attention",
    "title": "Scores are scaled.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "logits",
    "component": "ViT",
    "title": "One number per class.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "learns",
    "component": "train_epoch",
    "title": "learns",
    "status": "failed",
    "blame": "student",
    "diagnosis": "hangs",
    "message": "The check could not be finished: it did not return within 10 s.",
    "hint": "",
    "where": "homework.py:1",
    "seconds": 0.0
   }
  ],
  "near_names": [],
  "omissions": [],
  "forbidden": [],
  "tuned": [],
  "source": {
   "homework.py": "x = 1\n"
  },
  "claim": null,
  "shown_epochs": null,
  "parameters": null,
  "layers": [],
  "training": {
   "outcome": "budget",
   "reason": "After 2 epochs our time limit ended it.",
   "where": "",
   "data": "",
   "device": "cpu",
   "classes": [],
   "epochs": [
    {
     "number": 1,
     "train_loss": 1.0,
     "test_loss": 1.1,
     "test_accuracy": 0.4,
     "learning_rate": 0.1,
     "seconds": 3.0,
     "augmented_accuracy": null
    }
   ],
   "planned_epochs": null,
   "accuracy": null,
   "counted": "",
   "rebuilt": false,
   "interval": null,
   "runs": [],
   "confusion": [],
   "predictions": [],
   "attention": [],
   "seconds": 0.0,
   "projected_seconds": null
  },
  "checkpoint": {
   "status": "not_tried",
   "reason": "",
   "accuracy": null
  },
  "figures": [],
  "not_run": [],
  "attestation": {
   "level": "unofficial",
   "layers": null,
   "missing": []
  },
  "engine": "",
  "assignment_digest": "",
  "data_digest": "",
  "seconds": null
 }
}');
INSERT INTO "runs" VALUES(4,'small','400101204',1,'ta1','2026-02-02T23:00:00+00:00',NULL,'digest-400101204','','','{
 "format": 1,
 "evidence": {
  "student_id": "400101204",
  "assignment_id": "small",
  "submission_digest": "digest-400101204",
  "graded_at": "2026-02-02T23:00:00Z",
  "status": null,
  "reason": "",
  "received_at": "2026-01-31T17:00:00Z",
  "delivery": {
   "hinted_at": null,
   "hint": "",
   "marked_late": false,
   "extension": null
  },
  "partial": false,
  "code_file": "",
  "missing": [
   "report"
  ],
  "refused_files": [],
  "notes": [],
  "findings": [
   {
    "check": "oracle",
    "component": "Attention",
    "title": "It is attention.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "shape",
    "component": "Attention",
    "title": "The shape stays.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "scale",
    "component": "Attention",
    "title": "Scores are scaled.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "logits",
    "component": "ViT",
    "title": "One number per class.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "learns",
    "component": "train_epoch",
    "title": "It trains.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   }
  ],
  "near_names": [],
  "omissions": [],
  "forbidden": [],
  "tuned": [],
  "source": {
   "homework.py": "x = 1\n"
  },
  "claim": null,
  "shown_epochs": null,
  "parameters": null,
  "layers": [],
  "training": {
   "outcome": "completed",
   "reason": "",
   "where": "",
   "data": "",
   "device": "cpu",
   "classes": [],
   "epochs": [],
   "planned_epochs": 2,
   "accuracy": 0.7,
   "counted": "",
   "rebuilt": false,
   "interval": [
    0.66,
    0.74
   ],
   "runs": [],
   "confusion": [],
   "predictions": [],
   "attention": [],
   "seconds": 0.0,
   "projected_seconds": null
  },
  "checkpoint": {
   "status": "not_tried",
   "reason": "",
   "accuracy": null
  },
  "figures": [],
  "not_run": [],
  "attestation": {
   "level": "unofficial",
   "layers": null,
   "missing": []
  },
  "engine": "",
  "assignment_digest": "",
  "data_digest": "",
  "seconds": null
 }
}');
INSERT INTO "runs" VALUES(5,'small','400101205',1,'ta1','2026-02-03T00:00:00+00:00',NULL,'digest-400101205','','','{
 "format": 1,
 "evidence": {
  "student_id": "400101205",
  "assignment_id": "small",
  "submission_digest": "digest-400101205",
  "graded_at": "2026-02-03T00:00:00Z",
  "status": null,
  "reason": "",
  "received_at": "2026-01-31T17:00:00Z",
  "delivery": {
   "hinted_at": null,
   "hint": "",
   "marked_late": false,
   "extension": null
  },
  "partial": false,
  "code_file": "",
  "missing": [
   "report"
  ],
  "refused_files": [],
  "notes": [],
  "findings": [
   {
    "check": "oracle",
    "component": "Attention",
    "title": "It is attention.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "shape",
    "component": "Attention",
    "title": "The shape stays.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "scale",
    "component": "Attention",
    "title": "Scores are scaled.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "logits",
    "component": "ViT",
    "title": "One number per class.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "learns",
    "component": "train_epoch",
    "title": "It trains.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   }
  ],
  "near_names": [],
  "omissions": [],
  "forbidden": [],
  "tuned": [],
  "source": {
   "homework.py": "x = 1\n"
  },
  "claim": null,
  "shown_epochs": null,
  "parameters": null,
  "layers": [],
  "training": {
   "outcome": "completed",
   "reason": "",
   "where": "",
   "data": "",
   "device": "cpu",
   "classes": [],
   "epochs": [],
   "planned_epochs": 2,
   "accuracy": 0.7,
   "counted": "",
   "rebuilt": false,
   "interval": [
    0.66,
    0.74
   ],
   "runs": [],
   "confusion": [],
   "predictions": [],
   "attention": [],
   "seconds": 0.0,
   "projected_seconds": null
  },
  "checkpoint": {
   "status": "not_tried",
   "reason": "",
   "accuracy": null
  },
  "figures": [],
  "not_run": [],
  "attestation": {
   "level": "unofficial",
   "layers": null,
   "missing": []
  },
  "engine": "",
  "assignment_digest": "",
  "data_digest": "",
  "seconds": null
 }
}');
INSERT INTO "runs" VALUES(6,'small','400101206',1,'ta1','2026-02-03T01:00:00+00:00',NULL,'digest-400101206','','','{
 "format": 1,
 "evidence": {
  "student_id": "400101206",
  "assignment_id": "small",
  "submission_digest": "digest-400101206",
  "graded_at": "2026-02-03T01:00:00Z",
  "status": null,
  "reason": "",
  "received_at": "2026-01-31T17:00:00Z",
  "delivery": {
   "hinted_at": null,
   "hint": "",
   "marked_late": false,
   "extension": null
  },
  "partial": false,
  "code_file": "",
  "missing": [],
  "refused_files": [],
  "notes": [],
  "findings": [
   {
    "check": "oracle",
    "component": "Attention",
    "title": "It is attention.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "shape",
    "component": "Attention",
    "title": "The shape stays.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "scale",
    "component": "Attention",
    "title": "Scores are scaled.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "logits",
    "component": "ViT",
    "title": "One number per class.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "learns",
    "component": "train_epoch",
    "title": "It trains.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   }
  ],
  "near_names": [],
  "omissions": [],
  "forbidden": [],
  "tuned": [],
  "source": {
   "homework.py": "x = 1\n"
  },
  "claim": null,
  "shown_epochs": null,
  "parameters": null,
  "layers": [],
  "training": {
   "outcome": "completed",
   "reason": "",
   "where": "",
   "data": "",
   "device": "cpu",
   "classes": [],
   "epochs": [],
   "planned_epochs": 2,
   "accuracy": 0.7,
   "counted": "",
   "rebuilt": false,
   "interval": [
    0.66,
    0.74
   ],
   "runs": [],
   "confusion": [],
   "predictions": [],
   "attention": [],
   "seconds": 0.0,
   "projected_seconds": null
  },
  "checkpoint": {
   "status": "not_tried",
   "reason": "",
   "accuracy": null
  },
  "figures": [],
  "not_run": [],
  "attestation": {
   "level": "unofficial",
   "layers": null,
   "missing": []
  },
  "engine": "",
  "assignment_digest": "",
  "data_digest": "",
  "seconds": null
 }
}');
INSERT INTO "runs" VALUES(7,'small','400101207',1,'ta1','2026-02-03T02:00:00+00:00',NULL,'digest-400101207','','','{
 "format": 1,
 "evidence": {
  "student_id": "400101207",
  "assignment_id": "small",
  "submission_digest": "digest-400101207",
  "graded_at": "2026-02-03T02:00:00Z",
  "status": null,
  "reason": "",
  "received_at": "2026-01-31T17:00:00Z",
  "delivery": {
   "hinted_at": null,
   "hint": "",
   "marked_late": false,
   "extension": null
  },
  "partial": false,
  "code_file": "",
  "missing": [],
  "refused_files": [],
  "notes": [],
  "findings": [
   {
    "check": "oracle",
    "component": "Attention",
    "title": "It is attention.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "shape",
    "component": "Attention",
    "title": "The shape stays.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "scale",
    "component": "Attention",
    "title": "Scores are scaled.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "logits",
    "component": "ViT",
    "title": "One number per class.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "learns",
    "component": "train_epoch",
    "title": "It trains.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   }
  ],
  "near_names": [],
  "omissions": [],
  "forbidden": [],
  "tuned": [],
  "source": {
   "homework.py": "x = 1\n"
  },
  "claim": null,
  "shown_epochs": null,
  "parameters": null,
  "layers": [],
  "training": {
   "outcome": "completed",
   "reason": "",
   "where": "",
   "data": "",
   "device": "cpu",
   "classes": [],
   "epochs": [],
   "planned_epochs": 2,
   "accuracy": 0.7,
   "counted": "",
   "rebuilt": false,
   "interval": [
    0.66,
    0.74
   ],
   "runs": [],
   "confusion": [],
   "predictions": [],
   "attention": [],
   "seconds": 0.0,
   "projected_seconds": null
  },
  "checkpoint": {
   "status": "not_tried",
   "reason": "",
   "accuracy": null
  },
  "figures": [],
  "not_run": [],
  "attestation": {
   "level": "unofficial",
   "layers": null,
   "missing": []
  },
  "engine": "",
  "assignment_digest": "",
  "data_digest": "",
  "seconds": null
 }
}');
INSERT INTO "runs" VALUES(8,'small','400101208',1,'ta1','2026-02-03T03:00:00+00:00',NULL,'digest-400101208','','','{
 "format": 1,
 "evidence": {
  "student_id": "400101208",
  "assignment_id": "small",
  "submission_digest": "digest-400101208",
  "graded_at": "2026-02-03T03:00:00Z",
  "status": null,
  "reason": "",
  "received_at": null,
  "delivery": {
   "hinted_at": null,
   "hint": "",
   "marked_late": true,
   "extension": null
  },
  "partial": false,
  "code_file": "",
  "missing": [],
  "refused_files": [],
  "notes": [],
  "findings": [
   {
    "check": "oracle",
    "component": "Attention",
    "title": "It is attention.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "shape",
    "component": "Attention",
    "title": "The shape stays.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "scale",
    "component": "Attention",
    "title": "Scores are scaled.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "logits",
    "component": "ViT",
    "title": "One number per class.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "learns",
    "component": "train_epoch",
    "title": "It trains.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   }
  ],
  "near_names": [],
  "omissions": [],
  "forbidden": [],
  "tuned": [],
  "source": {
   "homework.py": "x = 1\n"
  },
  "claim": null,
  "shown_epochs": null,
  "parameters": null,
  "layers": [],
  "training": {
   "outcome": "completed",
   "reason": "",
   "where": "",
   "data": "",
   "device": "cpu",
   "classes": [],
   "epochs": [],
   "planned_epochs": 2,
   "accuracy": 0.7,
   "counted": "",
   "rebuilt": false,
   "interval": [
    0.66,
    0.74
   ],
   "runs": [],
   "confusion": [],
   "predictions": [],
   "attention": [],
   "seconds": 0.0,
   "projected_seconds": null
  },
  "checkpoint": {
   "status": "not_tried",
   "reason": "",
   "accuracy": null
  },
  "figures": [],
  "not_run": [],
  "attestation": {
   "level": "unofficial",
   "layers": null,
   "missing": []
  },
  "engine": "",
  "assignment_digest": "",
  "data_digest": "",
  "seconds": null
 }
}');
INSERT INTO "runs" VALUES(9,'small','400101209',1,'ta1','2026-02-03T04:00:00+00:00',NULL,'digest-400101209','','','{
 "format": 1,
 "evidence": {
  "student_id": "400101209",
  "assignment_id": "small",
  "submission_digest": "digest-400101209",
  "graded_at": "2026-02-03T04:00:00Z",
  "status": null,
  "reason": "",
  "received_at": "2026-02-03T20:00:00Z",
  "delivery": {
   "hinted_at": null,
   "hint": "",
   "marked_late": false,
   "extension": null
  },
  "partial": false,
  "code_file": "",
  "missing": [],
  "refused_files": [],
  "notes": [],
  "findings": [
   {
    "check": "oracle",
    "component": "Attention",
    "title": "It is attention.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "shape",
    "component": "Attention",
    "title": "The shape stays.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "scale",
    "component": "Attention",
    "title": "Scores are scaled.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "logits",
    "component": "ViT",
    "title": "One number per class.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "learns",
    "component": "train_epoch",
    "title": "It trains.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   }
  ],
  "near_names": [],
  "omissions": [],
  "forbidden": [],
  "tuned": [],
  "source": {
   "homework.py": "x = 1\n"
  },
  "claim": null,
  "shown_epochs": null,
  "parameters": null,
  "layers": [],
  "training": {
   "outcome": "completed",
   "reason": "",
   "where": "",
   "data": "",
   "device": "cpu",
   "classes": [],
   "epochs": [],
   "planned_epochs": 2,
   "accuracy": 0.7,
   "counted": "",
   "rebuilt": false,
   "interval": [
    0.66,
    0.74
   ],
   "runs": [],
   "confusion": [],
   "predictions": [],
   "attention": [],
   "seconds": 0.0,
   "projected_seconds": null
  },
  "checkpoint": {
   "status": "not_tried",
   "reason": "",
   "accuracy": null
  },
  "figures": [],
  "not_run": [],
  "attestation": {
   "level": "unofficial",
   "layers": null,
   "missing": []
  },
  "engine": "",
  "assignment_digest": "",
  "data_digest": "",
  "seconds": null
 }
}');
INSERT INTO "runs" VALUES(10,'small','400101210',1,'ta1','2026-02-03T05:00:00+00:00',NULL,'digest-400101210','','','{
 "format": 1,
 "evidence": {
  "student_id": "400101210",
  "assignment_id": "small",
  "submission_digest": "digest-400101210",
  "graded_at": "2026-02-03T05:00:00Z",
  "status": null,
  "reason": "",
  "received_at": "2026-01-31T17:00:00Z",
  "delivery": {
   "hinted_at": null,
   "hint": "",
   "marked_late": false,
   "extension": null
  },
  "partial": false,
  "code_file": "",
  "missing": [],
  "refused_files": [],
  "notes": [],
  "findings": [
   {
    "check": "oracle",
    "component": "Attention",
    "title": "It is attention.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "shape",
    "component": "Attention",
    "title": "The shape stays.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "scale",
    "component": "Attention",
    "title": "scale",
    "status": "failed",
    "blame": "student",
    "diagnosis": "missing_scale",
    "message": "Not scaled.",
    "hint": "",
    "where": "homework.py:1",
    "seconds": 0.0
   },
   {
    "check": "logits",
    "component": "ViT",
    "title": "One number per class.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "learns",
    "component": "train_epoch",
    "title": "It trains.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   }
  ],
  "near_names": [],
  "omissions": [],
  "forbidden": [],
  "tuned": [],
  "source": {
   "homework.py": "x = 1\n"
  },
  "claim": null,
  "shown_epochs": null,
  "parameters": null,
  "layers": [],
  "training": {
   "outcome": "completed",
   "reason": "",
   "where": "",
   "data": "",
   "device": "cpu",
   "classes": [],
   "epochs": [],
   "planned_epochs": 2,
   "accuracy": 0.7,
   "counted": "",
   "rebuilt": false,
   "interval": [
    0.66,
    0.74
   ],
   "runs": [],
   "confusion": [],
   "predictions": [],
   "attention": [],
   "seconds": 0.0,
   "projected_seconds": null
  },
  "checkpoint": {
   "status": "not_tried",
   "reason": "",
   "accuracy": null
  },
  "figures": [],
  "not_run": [],
  "attestation": {
   "level": "unofficial",
   "layers": null,
   "missing": []
  },
  "engine": "",
  "assignment_digest": "",
  "data_digest": "",
  "seconds": null
 }
}');
INSERT INTO "runs" VALUES(11,'small','400101210',2,'ta1','2026-02-04T04:00:00+00:00',NULL,'digest-400101210','','','{
 "format": 1,
 "evidence": {
  "student_id": "400101210",
  "assignment_id": "small",
  "submission_digest": "digest-400101210",
  "graded_at": "2026-02-04T04:00:00Z",
  "status": null,
  "reason": "",
  "received_at": "2026-01-31T17:00:00Z",
  "delivery": {
   "hinted_at": null,
   "hint": "",
   "marked_late": false,
   "extension": null
  },
  "partial": false,
  "code_file": "",
  "missing": [],
  "refused_files": [],
  "notes": [],
  "findings": [
   {
    "check": "oracle",
    "component": "Attention",
    "title": "It is attention.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "shape",
    "component": "Attention",
    "title": "The shape stays.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "scale",
    "component": "Attention",
    "title": "Scores are scaled.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "logits",
    "component": "ViT",
    "title": "One number per class.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "learns",
    "component": "train_epoch",
    "title": "learns",
    "status": "failed",
    "blame": "student",
    "diagnosis": "hangs",
    "message": "The check could not be finished: it did not return within 10 s.",
    "hint": "",
    "where": "homework.py:1",
    "seconds": 0.0
   }
  ],
  "near_names": [],
  "omissions": [],
  "forbidden": [],
  "tuned": [],
  "source": {
   "homework.py": "x = 1\n"
  },
  "claim": null,
  "shown_epochs": null,
  "parameters": null,
  "layers": [],
  "training": {
   "outcome": "completed",
   "reason": "",
   "where": "",
   "data": "",
   "device": "cpu",
   "classes": [],
   "epochs": [],
   "planned_epochs": 2,
   "accuracy": 0.7,
   "counted": "",
   "rebuilt": false,
   "interval": [
    0.66,
    0.74
   ],
   "runs": [],
   "confusion": [],
   "predictions": [],
   "attention": [],
   "seconds": 0.0,
   "projected_seconds": null
  },
  "checkpoint": {
   "status": "not_tried",
   "reason": "",
   "accuracy": null
  },
  "figures": [],
  "not_run": [],
  "attestation": {
   "level": "unofficial",
   "layers": null,
   "missing": []
  },
  "engine": "",
  "assignment_digest": "",
  "data_digest": "",
  "seconds": null
 }
}');
INSERT INTO "runs" VALUES(12,'small','400101206',2,'ta1','2026-02-03T06:00:00+00:00',NULL,'digest-400101206','','','{
 "format": 1,
 "evidence": {
  "student_id": "400101206",
  "assignment_id": "small",
  "submission_digest": "digest-400101206",
  "graded_at": "2026-02-03T06:00:00Z",
  "status": null,
  "reason": "",
  "received_at": "2026-01-31T17:00:00Z",
  "delivery": {
   "hinted_at": null,
   "hint": "",
   "marked_late": false,
   "extension": null
  },
  "partial": false,
  "code_file": "",
  "missing": [],
  "refused_files": [],
  "notes": [],
  "findings": [
   {
    "check": "oracle",
    "component": "Attention",
    "title": "It is attention.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "shape",
    "component": "Attention",
    "title": "The shape stays.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "scale",
    "component": "Attention",
    "title": "Scores are scaled.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "logits",
    "component": "ViT",
    "title": "One number per class.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "learns",
    "component": "train_epoch",
    "title": "learns",
    "status": "failed",
    "blame": "student",
    "diagnosis": "hangs",
    "message": "The check could not be finished: it did not return within 10 s.",
    "hint": "",
    "where": "homework.py:1",
    "seconds": 0.0
   }
  ],
  "near_names": [],
  "omissions": [],
  "forbidden": [],
  "tuned": [],
  "source": {
   "homework.py": "x = 1\n"
  },
  "claim": null,
  "shown_epochs": null,
  "parameters": null,
  "layers": [],
  "training": {
   "outcome": "completed",
   "reason": "",
   "where": "",
   "data": "",
   "device": "cpu",
   "classes": [],
   "epochs": [],
   "planned_epochs": 2,
   "accuracy": 0.7,
   "counted": "",
   "rebuilt": false,
   "interval": [
    0.66,
    0.74
   ],
   "runs": [],
   "confusion": [],
   "predictions": [],
   "attention": [],
   "seconds": 0.0,
   "projected_seconds": null
  },
  "checkpoint": {
   "status": "not_tried",
   "reason": "",
   "accuracy": null
  },
  "figures": [],
  "not_run": [],
  "attestation": {
   "level": "unofficial",
   "layers": null,
   "missing": []
  },
  "engine": "",
  "assignment_digest": "",
  "data_digest": "",
  "seconds": null
 }
}');
INSERT INTO "runs" VALUES(13,'small','400101207',2,'ta1','2026-02-03T07:00:00+00:00',NULL,'digest-later','','','{
 "format": 1,
 "evidence": {
  "student_id": "400101207",
  "assignment_id": "small",
  "submission_digest": "digest-later",
  "graded_at": "2026-02-03T07:00:00Z",
  "status": null,
  "reason": "",
  "received_at": "2026-01-31T17:00:00Z",
  "delivery": {
   "hinted_at": null,
   "hint": "",
   "marked_late": false,
   "extension": null
  },
  "partial": false,
  "code_file": "",
  "missing": [],
  "refused_files": [],
  "notes": [],
  "findings": [
   {
    "check": "oracle",
    "component": "Attention",
    "title": "It is attention.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "shape",
    "component": "Attention",
    "title": "The shape stays.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "scale",
    "component": "Attention",
    "title": "Scores are scaled.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "logits",
    "component": "ViT",
    "title": "One number per class.",
    "status": "passed",
    "blame": null,
    "diagnosis": null,
    "message": "",
    "hint": "",
    "where": "",
    "seconds": 0.0
   },
   {
    "check": "learns",
    "component": "train_epoch",
    "title": "learns",
    "status": "failed",
    "blame": "student",
    "diagnosis": "hangs",
    "message": "The check could not be finished: it did not return within 10 s.",
    "hint": "",
    "where": "homework.py:1",
    "seconds": 0.0
   }
  ],
  "near_names": [],
  "omissions": [],
  "forbidden": [],
  "tuned": [],
  "source": {
   "homework.py": "x = 1\n"
  },
  "claim": null,
  "shown_epochs": null,
  "parameters": null,
  "layers": [],
  "training": {
   "outcome": "completed",
   "reason": "",
   "where": "",
   "data": "",
   "device": "cpu",
   "classes": [],
   "epochs": [],
   "planned_epochs": 2,
   "accuracy": 0.7,
   "counted": "",
   "rebuilt": false,
   "interval": [
    0.66,
    0.74
   ],
   "runs": [],
   "confusion": [],
   "predictions": [],
   "attention": [],
   "seconds": 0.0,
   "projected_seconds": null
  },
  "checkpoint": {
   "status": "not_tried",
   "reason": "",
   "accuracy": null
  },
  "figures": [],
  "not_run": [],
  "attestation": {
   "level": "unofficial",
   "layers": null,
   "missing": []
  },
  "engine": "",
  "assignment_digest": "",
  "data_digest": "",
  "seconds": null
 }
}');
CREATE TABLE totals (
	id INTEGER NOT NULL, 
	assignment_id TEXT NOT NULL, 
	student_id TEXT NOT NULL, 
	points FLOAT, 
	decided FLOAT NOT NULL, 
	awaiting FLOAT NOT NULL, 
	maximum FLOAT NOT NULL, 
	status TEXT NOT NULL, 
	who TEXT NOT NULL, 
	at TEXT NOT NULL, 
	cause TEXT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "totals" VALUES(1,'small','400101201',27.0,30.0,10.0,40.0,'graded','ta1','2026-02-03T09:00:00+00:00','grade');
INSERT INTO "totals" VALUES(2,'small','400101202',0.0,0.0,40.0,40.0,'graded','ta1','2026-02-03T11:00:00+00:00','grade');
INSERT INTO "totals" VALUES(3,'small','400101203',12.0,15.0,25.0,40.0,'graded','ta1','2026-02-03T13:00:00+00:00','grade');
INSERT INTO "totals" VALUES(4,'small','400101204',NULL,30.0,10.0,40.0,'incomplete','ta1','2026-02-03T15:00:00+00:00','grade');
INSERT INTO "totals" VALUES(5,'small','400101205',NULL,30.0,10.0,40.0,'incomplete','ta1','2026-02-03T17:00:00+00:00','grade');
INSERT INTO "totals" VALUES(6,'small','400101206',27.0,30.0,10.0,40.0,'graded','ta1','2026-02-03T19:00:00+00:00','grade');
INSERT INTO "totals" VALUES(7,'small','400101207',27.0,30.0,10.0,40.0,'graded','ta1','2026-02-03T21:00:00+00:00','grade');
INSERT INTO "totals" VALUES(8,'small','400101208',27.0,30.0,10.0,40.0,'graded','ta1','2026-02-03T23:00:00+00:00','grade');
INSERT INTO "totals" VALUES(9,'small','400101209',27.0,30.0,10.0,40.0,'graded','ta1','2026-02-04T01:00:00+00:00','grade');
INSERT INTO "totals" VALUES(10,'small','400101210',25.0,30.0,10.0,40.0,'graded','ta1','2026-02-04T03:00:00+00:00','grade');
INSERT INTO "totals" VALUES(11,'small','400101201',33.75,40.0,0.0,40.0,'graded','ta1','2026-02-05T05:00:00+00:00','marks import');
INSERT INTO "totals" VALUES(12,'small','400101202',12.0,15.0,25.0,40.0,'graded','ta1','2026-02-05T06:00:00+00:00','marks import');
INSERT INTO "totals" VALUES(13,'small','400101204',0.0,40.0,0.0,40.0,'incomplete','ta1','2026-02-05T08:00:00+00:00','marks import');
INSERT INTO "totals" VALUES(14,'small','400101205',27.0,30.0,10.0,40.0,'incomplete','ta1','2026-02-05T09:00:00+00:00','marks import');
INSERT INTO "totals" VALUES(15,'small','400101210',27.0,30.0,10.0,40.0,'graded','ta1','2026-02-05T14:00:00+00:00','marks import');
INSERT INTO "totals" VALUES(16,'small','400101207',24.0,30.0,10.0,40.0,'graded','ta1','2026-02-05T18:00:00+00:00','grade');
CREATE INDEX edits_by_student ON edits (assignment_id, student_id);
CREATE INDEX totals_by_student ON totals (assignment_id, student_id);
CREATE TRIGGER runs_no_update BEFORE UPDATE ON runs BEGIN SELECT RAISE(ABORT, 'the gradebook only grows: nothing in runs is changed'); END;
CREATE TRIGGER runs_no_delete BEFORE DELETE ON runs BEGIN SELECT RAISE(ABORT, 'the gradebook only grows: nothing in runs is changed'); END;
CREATE TRIGGER images_no_update BEFORE UPDATE ON images BEGIN SELECT RAISE(ABORT, 'the gradebook only grows: nothing in images is changed'); END;
CREATE TRIGGER images_no_delete BEFORE DELETE ON images BEGIN SELECT RAISE(ABORT, 'the gradebook only grows: nothing in images is changed'); END;
CREATE TRIGGER run_images_no_update BEFORE UPDATE ON run_images BEGIN SELECT RAISE(ABORT, 'the gradebook only grows: nothing in run_images is changed'); END;
CREATE TRIGGER run_images_no_delete BEFORE DELETE ON run_images BEGIN SELECT RAISE(ABORT, 'the gradebook only grows: nothing in run_images is changed'); END;
CREATE TRIGGER edits_no_update BEFORE UPDATE ON edits BEGIN SELECT RAISE(ABORT, 'the gradebook only grows: nothing in edits is changed'); END;
CREATE TRIGGER edits_no_delete BEFORE DELETE ON edits BEGIN SELECT RAISE(ABORT, 'the gradebook only grows: nothing in edits is changed'); END;
CREATE TRIGGER totals_no_update BEFORE UPDATE ON totals BEGIN SELECT RAISE(ABORT, 'the gradebook only grows: nothing in totals is changed'); END;
CREATE TRIGGER totals_no_delete BEFORE DELETE ON totals BEGIN SELECT RAISE(ABORT, 'the gradebook only grows: nothing in totals is changed'); END;
COMMIT;
