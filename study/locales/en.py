"""English. Keys that begin with ``ui.`` are the page's own words, with ``refused_`` what the server refuses by.

The others belong to the study's content.
"""

from __future__ import annotations

TEXTS: dict[str, str] = {
    "title": "Foretell the AI",
    "consent": (
        "You are invited to a study about how people predict the answers of an artificial intelligence (AI) that "
        "names what is in a picture.\n\n"
        "You will see pictures one after another. For each one you choose which of two names the AI gave it.\n\n"
        "Taking part is voluntary. You may stop at any time, without giving a reason, and you may withdraw what you "
        "answered with a private code. We record your answers and how long they take, and nothing in them identifies "
        "you. The pseudonymous answers may be shared with other researchers."
    ),
    "agree_age": "I am at least 18 years old.",
    "agree": "I have read this, and I agree to take part.",
    "contact_researcher": "Responsible for this study: {name}.",
    "contact_board": "Ethics approval: {name}.",
    "contact_email": "Questions or concerns? Write to",
    "instructions": (
        "An AI has looked at a number of pictures and given each of them a name. Sometimes its answer is right, "
        "sometimes it is wrong.\n\n"
        "Your task is to foretell the AI: for each picture, choose the name that the AI gave it, "
        "whether or not you would call it so yourself."
    ),
    "check": "A few questions first, to see whether we have explained it well.",
    "check_again": ("Not every answer was right. Please read this once more; you may then answer the questions again."),
    "example": "This is what a question looks like.",
    "example_map": (
        "Beside the picture you see it once more, in grey with a map over it. Orange parts spoke for the AI's answer, "
        "blue parts against it; grey parts made no difference."
    ),
    "example_examples": "Above each name you see other pictures that the AI calls by that name.",
    "example_concepts": (
        "Above each name you see what makes the AI answer with it: how much more often (a bar to the right) or less "
        "often (to the left) it says this name when a picture shows what is written there, in percentage points."
    ),
    "example_gauge": (
        "Beside the picture you see how sure the AI is of its answer: at 100 % it is certain, far below it wavers "
        "between several names. It can be sure and wrong."
    ),
    "example_both": "Each of these pictures carries a map of its own.",
    "practice": "First a few practice pictures. After each you are told what the AI said.",
    "main": "Now the study itself begins. From here on you are not told what the AI said.",
    "question": "What does the AI call this picture?",
    "catch": "To show that you are reading, please choose “{name}” here.",
    "map_legend": "orange: for its answer, blue: against",
    "gauge_legend": "how sure the AI is of its answer",
    "examples_legend": "The AI calls these “{name}”",
    "concepts_legend": "What makes it say “{name}”",
    "feedback": "The AI called this picture “{name}”.",
    "confidence": "How sure are you?",
    "questionnaire": "A few last questions.",
    "debrief": (
        "Thank you for taking part.\n\n"
        "We study whether explanations help people to foretell what an AI will say. People in this study saw the "
        "pictures alone, with maps of what the AI relied on, with examples of what it calls by a name, or with both. "
        "Some questions told you what to choose: they show who was reading."
    ),
    "debrief_placebo": (
        "Some people saw maps or examples that say nothing of the AI's answer: a map with its colours in places drawn "
        "at random, a map of a network that has learned nothing, or examples of something else. You could not be told "
        "before: only so does the study show what true explanations add."
    ),
    "declined": "You chose not to take part. Nothing but this choice was kept. You may close this page.",
    "full": "Thank you for your interest. All places in this study are taken, so you cannot take part now.",
    "paused": (
        "This study is pausing and takes nobody new at the moment. Please open the same link again later. If you were "
        "sent by a recruiter and cannot wait, please return your place there. Nothing about you was kept."
    ),
    "closed": "Thank you for your interest. This study has ended and takes nobody new. Nothing about you was kept.",
    "screened": (
        "Thank you for your interest. The questions about the task were not answered as we need it for this study, so "
        "it ends here. This is no judgement of you, and nothing is held against you."
    ),
    "expired": (
        "The time for this study is over, so it ends here. What you answered until now is kept. You are paid for the "
        "part you did; please use the code below or write to us."
    ),
    "withdrawn": "Your answers were erased. Thank you for your time; withdrawing has no disadvantage for you.",
    "withdrawn_id": (
        "If you came by a recruiter's link, the ID in it is kept for up to {days} days after your consent, apart from "
        "all responses, so that you can be paid. It is then erased."
    ),
    "refused_unknown": "There is no study at this address. Please check the link, or open it again where you found it.",
    "refused_link": "This link lacks something. Please open the study again where you found it.",
    "refused_stale": (
        "This page is no longer valid: the study was opened again elsewhere. Continue there, or open the link you were "
        "given once more."
    ),
    "refused_elsewhere": "This study is open in another tab. Continue there, or reload this page to go on here.",
    "refused_moved": "The study is at another place by now. Please reload the page to go on there.",
    "refused_code": "No participation has this code. Please check it.",
    "refused_known": (
        "This link is already in use. Please continue in the browser in which you started, or enter your private code. "
        "If you have not agreed to take part yet, open the link again in ten minutes."
    ),
    "refused_invited": "Only invited participants can take part in this study. Please open your invitation's link.",
    "refused_busy": "Many requests come from your network at the moment. Please wait a minute.",
    "refused_preview": "Only the researchers may look at this study before it begins: log in to their pages first.",
    "no_script": "This study needs JavaScript. Please switch it on and reload the page.",
    "ui.preview": "Preview: no data",
    "ui.wait": "One moment…",
    "ui.thanks": "Thank you",
    "ui.again": "Try again",
    "ui.moment": "A moment, please",
    "ui.cannot": "This page cannot continue",
    "ui.wrong": "Something went wrong. Please reload the page.",
    "ui.decline": "I do not want to take part",
    "ui.accept": "Take part",
    "ui.task": "What you will do",
    "ui.continue": "Continue",
    "ui.check": "Did we explain it well?",
    "ui.send": "Send",
    "ui.look": "What you will see",
    "ui.keys": "{left} chooses the left name, {right} the right one. You may also click or tap. There is no hurry.",
    "ui.touch": "Tap the name that you choose. There is no hurry.",
    "ui.mini_picture": "The picture the AI looked at",
    "ui.mini_map": "Beside it, what is known of its answer",
    "ui.mini_samples": "Above each name, what goes with it for the AI",
    "ui.mini_names": "The two names: choose the one the AI gave",
    "ui.practice": "Practice",
    "ui.main": "The study begins",
    "ui.back": "Welcome back",
    "ui.resume": "You continue with picture {number} of {total}.",
    "ui.break": "Time for a break",
    "ui.break_text": "You have done {number} of {total}. Rest your eyes as long as you like, then go on.",
    "ui.begin": "Begin",
    "ui.loading": "Loading the pictures… {number} of {total}",
    "ui.loaded": "All pictures are ready.",
    "ui.no_pictures": "Some pictures could not be loaded. Please check your connection.",
    "ui.progress": "{number} of {total}",
    "ui.picture": "picture {number}",
    "ui.picture_map": "picture {number} with map",
    "ui.picture_left": "picture {number}, left {sample}",
    "ui.picture_right": "picture {number}, right {sample}",
    "ui.next": "Next",
    "ui.slow": "Take the time you need, then choose a name.",
    "ui.sure_low": "I guessed",
    "ui.sure_high": "certain",
    "ui.saved": "Saved",
    "ui.saving": "Saving…",
    "ui.offline": "Offline: will be sent as soon as possible",
    "ui.resending": "Continuing where you were",
    "ui.questionnaire": "Nearly done",
    "ui.required": "Please answer every question.",
    "ui.done": "Done",
    "ui.code": "Your completion code",
    "ui.copy": "Copy",
    "ui.copied": "Copied",
    "ui.all_saved": "All your answers are saved. You may close this page.",
    "ui.redirect": "Back to where you came from",
    "ui.receipt": "Your receipt: the server holds what you answered",
    "ui.late": (
        "Your answers are with the server, but it cannot be reached to end the study. This page keeps trying; please "
        "leave it open. If that lasts, send the researchers this receipt: {receipt}"
    ),
    "ui.withdraw": "Withdraw",
    "ui.withdraw_title": "Withdraw from this study",
    "ui.withdraw_text": (
        "If you go on, everything you answered is erased for good. Nothing is held against you, and what you are owed "
        "for your time stays as it is. You need your private code."
    ),
    "ui.withdraw_code": "Your private code for withdrawing later, at {link}",
    "ui.withdraw_label": "Private code",
    "ui.withdraw_yes": "Erase my answers",
    "ui.withdraw_no": "Go back",
    "ui.elsewhere": "The study is open elsewhere",
    "ui.elsewhere_text": "You have it open in another tab or window. Do you want to go on here instead?",
    "ui.here": "Continue here",
    "ui.gate": "This device does not fit this study",
    "ui.gate_small": "The window is too small: it needs at least {width} × {height} points. Make it larger and reload.",
    "ui.gate_phone": "Please open this link on a computer with a keyboard.",
    "ui.gate_storage": (
        "This browser does not let the page keep anything, so answers could be lost. Leave private browsing, or use "
        "another browser, and reload."
    ),
    "ui.gate_return": "If that is not possible, please return your place. Nothing was kept, and nothing is lost.",
}
