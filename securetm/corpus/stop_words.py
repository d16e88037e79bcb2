"""English stop words. The list is a choice: replace it freely."""

from __future__ import annotations

_PRONOUNS = """
i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers herself
it its itself they them their theirs themselves one ones oneself who whom whose which what whoever whatever whichever
this that these those someone somebody something anyone anybody anything everyone everybody everything nobody nothing none
"""
_JOINTS = """
a an the and or but nor so yet if then else than because since while whereas whether although though unless until till as
about above across after against along alongside amid among amongst around at before behind below beneath beside besides
between beyond by despite down during except for from in inside into like near of off on onto opposite out outside over past
per round through throughout to toward towards under underneath unlike up upon versus via with within without
"""
_AUXILIARIES = """
am is are was were be been being have has had having do does did doing done can could may might must shall should will would
ought need dare cannot let lets got get gets getting gotten go goes going gone went
"""
_CONTRACTIONS = """
i'm i've i'd i'll you're you've you'd you'll he'd he'll she'd she'll we're we've we'd we'll they're they've they'd they'll
it'd it'll that'll that'd there'll who'd who'll isn't aren't wasn't weren't haven't hasn't hadn't don't doesn't didn't can't
couldn't won't wouldn't shan't shouldn't mustn't mightn't needn't ain't y'all im ive dont doesnt didnt cant couldnt wont
wouldnt shouldnt isnt arent wasnt werent hasnt havent hadnt ill id youre youve theyre thats theres whats
don doesn didn isn aren wasn weren hasn haven hadn couldn wouldn shouldn won ain ve ll re
"""
_ADVERBS = """
not no yes never ever always often sometimes usually rarely seldom again already almost also altogether any anyhow anyway
anywhere apart away back both each either neither enough even every everywhere few fewer fairly first further furthermore
hence here hereby herein how however indeed instead just last later latter least less lots many maybe meanwhile more moreover
most mostly much namely nearly nevertheless next nonetheless nowhere now once only other others otherwise own perhaps
possibly probably quite rather really same second several similarly some somehow somewhat somewhere soon still such there
thereafter thereby therefore therein thus together too twice very well when whence whenever where whereby wherein wherever
why all another away etc eg ie vs okay ok please
"""
_VERBS = """
say says said saying make makes made making take takes took taken taking come comes came coming see sees saw seen seeing
know knows knew known think thinks thought use uses used using want wants wanted give gives given gave seem seems seemed
seeming become becomes became becoming keep keeps kept put puts try tries tried tell tells told look looks looked
"""

ENGLISH = frozenset(" ".join((_PRONOUNS, _JOINTS, _AUXILIARIES, _CONTRACTIONS, _ADVERBS, _VERBS)).split())
